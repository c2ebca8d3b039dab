//! Small programs for tests, built step by step.

use canopy_schedule::CollectiveKind;

use super::program::{Buffer, Chunks, Operation, Program, Protocol, Purpose, RankProgram, Step, ThreadBlock};

/// A step between two places such as `i3` and `o0`; `-` for an unused one.
pub(crate) fn step(operation: &str, source: &str, destination: &str, chunk_count: u32) -> Step {
    let operation = Operation::ALL.into_iter().find(|known| known.name() == operation).unwrap();
    Step {
        index: 0,
        operation,
        source: chunks(source),
        destination: chunks(destination),
        chunk_count,
        wait_block: None,
        wait_step: None,
        is_awaited: false,
    }
}

fn chunks(text: &str) -> Chunks {
    let buffer = match text.as_bytes()[0] {
        b'o' => Buffer::Output,
        b's' => Buffer::Scratch,
        _ => Buffer::Input,
    };
    Chunks { buffer, offset: text[1..].parse().ok() }
}

/// The step, waiting for a step of another block.
pub(crate) fn after(block: u32, awaited: u32, step: Step) -> Step {
    Step { wait_block: Some(block), wait_step: Some(awaited), ..step }
}

/// The step, published.
pub(crate) fn awaited(step: Step) -> Step {
    Step { is_awaited: true, ..step }
}

pub(crate) fn block(send: Option<u32>, receive: Option<u32>, steps: Vec<Step>) -> ThreadBlock {
    let steps = (0..).zip(steps).map(|(index, step)| Step { index, ..step }).collect();
    ThreadBlock { id: 0, send, receive, channel: 0, steps }
}

/// A rank with `[input, output, scratch]` chunks.
pub(crate) fn rank(rank: u32, sizes: [u32; 3], blocks: Vec<ThreadBlock>) -> RankProgram {
    let [input_chunks, output_chunks, scratch_chunks] = sizes;
    let thread_blocks = (0..).zip(blocks).map(|(id, block)| ThreadBlock { id, ..block }).collect();
    RankProgram { rank, input_chunks, output_chunks, scratch_chunks, thread_blocks }
}

pub(crate) fn program(
    collective: CollectiveKind,
    in_place: bool,
    chunk_count: u32,
    ranks: Vec<RankProgram>,
) -> Program {
    Program {
        name: "example".to_owned(),
        protocol: Protocol::Simple,
        channel_count: 1,
        chunk_count,
        rank_count: u32::try_from(ranks.len()).unwrap(),
        purpose: Purpose::Collective(collective),
        in_place,
        out_of_place: Some(!in_place),
        bytes_min: Some(0),
        bytes_max: Some(1 << 20),
        thread_count: None,
        ranks,
    }
}

/// Ring allgather of four ranks out of place, with shares of `k` chunks: every rank sends its own share first, which
/// needs as many free slots as that takes transfers.
pub(crate) fn ring_allgather(k: u32) -> Program {
    let of_rank = |own: u32| {
        let at = |distance: u32| format!("o{}", (own + 4 - distance) % 4 * k);
        let mut steps = vec![step("s", "i0", "i0", k)];
        steps.extend([1, 2].map(|distance| step("rcs", &at(distance), &at(distance), k)));
        steps.push(step("r", &at(3), &at(3), k));
        let ring = block(Some((own + 1) % 4), Some((own + 3) % 4), steps);
        rank(own, [k, 4 * k, 0], vec![ring, block(None, None, vec![step("cpy", "i0", &at(0), k)])])
    };
    program(CollectiveKind::Allgather, false, 4 * k, (0..4).map(of_rank).collect())
}

/// Ring allreduce of four ranks in place.
pub(crate) fn ring_allreduce() -> Program {
    let of_rank = |own: u32| {
        let at = |distance: u32| format!("i{}", (own + 8 - distance) % 4);
        let operations = ["s", "rrs", "rrs", "rrcs", "rcs", "rcs", "r"];
        let steps = (0..).zip(operations).map(|(distance, name)| step(name, &at(distance), &at(distance), 1)).collect();
        rank(own, [4, 0, 0], vec![block(Some((own + 1) % 4), Some((own + 3) % 4), steps)])
    };
    program(CollectiveKind::Allreduce, true, 4, (0..4).map(of_rank).collect())
}

/// The ring allgather with receives and sends in blocks of their own: needs waits, and only one slot.
pub(crate) fn split_allgather() -> Program {
    let of_rank = |own: u32| {
        let at = |distance: u32| format!("o{}", (own + 4 - distance) % 4);
        let receive = |distance: u32| step("r", &at(distance), &at(distance), 1);
        let receives = vec![awaited(receive(1)), awaited(receive(2)), receive(3)];
        let send = |distance: u32| after(0, distance - 1, step("s", &at(distance), &at(distance), 1));
        let sends = vec![step("s", "i0", &at(0), 1), send(1), send(2)];
        let blocks = vec![
            block(None, Some((own + 3) % 4), receives),
            block(Some((own + 1) % 4), None, sends),
            block(None, None, vec![step("cpy", "i0", &at(0), 1)]),
        ];
        rank(own, [1, 4, 0], blocks)
    };
    let program = program(CollectiveKind::Allgather, false, 4, (0..4).map(of_rank).collect());
    Program { protocol: Protocol::Ll, ..program }
}
