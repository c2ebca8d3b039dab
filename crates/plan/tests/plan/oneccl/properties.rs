//! Programs made up by chance read back as they were written, and no text makes the reader panic.

use canopy_plan::Buffer;
use canopy_plan::oneccl::EmulateOptions;
use canopy_plan::oneccl::{
    Completion, Local, Meta, Program, RankProgram, Receive, Route, Scope, Send, Span, Step, emulate, lower, parse,
    prove, write,
};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_synth::Algorithm;
use canopy_topology::Rank;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::oneccl::plans::options;

use crate::support::graphs::planned;

fn spans() -> impl Strategy<Value = Span> {
    let buffers = prop::sample::select(vec![Buffer::Input, Buffer::Output, Buffer::Scratch]);
    (buffers, any::<u32>(), any::<u32>()).prop_map(|(buffer, first, count)| Span { buffer, first, count })
}

fn scopes() -> impl Strategy<Value = Scope> {
    prop::sample::select(Scope::ALL.to_vec())
}

fn steps() -> impl Strategy<Value = Step> {
    let sends = (any::<u32>(), spans(), prop::option::of(any::<u32>()));
    let sends = sends.prop_map(|(peer, span, route)| Send { peer, span, route });
    let receives = (any::<u32>(), spans()).prop_map(|(peer, span)| Receive { peer, span });
    let locals = (any::<bool>(), spans(), spans()).prop_map(|(is_reduction, source, destination)| Local {
        is_reduction,
        source,
        destination: Span { count: source.count, ..destination },
    });
    let completion = (scopes(), prop::collection::vec(locals, 0..4), prop::option::of(scopes()))
        .prop_map(|(scope, locals, after)| Completion { scope, locals, after });
    (
        any::<u32>(),
        prop::collection::vec(sends, 0..4),
        prop::collection::vec(receives, 0..4),
        prop::option::of(completion),
    )
        .prop_map(|(index, sends, receives, completion)| Step { index, sends, receives, completion })
}

fn programs() -> impl Strategy<Value = Program> {
    let meta = ("[A-Za-z0-9_.-]{1,63}", "[ -~äß→]{0,40}").prop_map(|(key, value)| Meta { key, value });
    let routes = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), prop::collection::vec(any::<u32>(), 1..5))
        .prop_map(|(id, source, destination, layer, hops)| Route { id, source, destination, layer, hops });
    let ranks = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), prop::collection::vec(steps(), 0..4))
        .prop_map(|(rank, input_chunks, output_chunks, scratch_chunks, steps)| RankProgram {
            rank,
            input_chunks,
            output_chunks,
            scratch_chunks,
            steps,
        });
    let head = (
        "[A-Za-z0-9_.-]{1,63}",
        prop::sample::select(CollectiveKind::ALL.to_vec()),
        2_u32..65536,
        1_u32..,
        any::<bool>(),
        1_u32..65,
        0_u64..1 << 63,
        0_u64..1 << 63,
    );
    let body =
        (prop::collection::vec(meta, 0..3), prop::collection::vec(routes, 0..3), prop::collection::vec(ranks, 0..4));
    (head, body).prop_map(|(head, (meta, routes, ranks))| {
        let (name, kind, rank_count, chunk_count, in_place, instances, bytes_min, bytes_max) = head;
        let root = kind.has_root().then(|| Rank::new(chunk_count % rank_count));
        let collective = Collective::new(kind, root, rank_count).unwrap();
        let bytes_max = Some(bytes_max).filter(|bytes| *bytes > 0);
        Program {
            name,
            collective,
            rank_count,
            chunk_count,
            in_place,
            instances,
            bytes_min,
            bytes_max,
            meta,
            routes,
            ranks,
        }
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn what_is_written_reads_back(program in programs()) {
        let text = write(&program);
        prop_assert_eq!(parse(&text), Ok(program));
    }

    /// Neither reader, proof nor emulator panics on nonsense that has the right form.
    #[test]
    fn nonsense_is_judged(program in programs()) {
        let proof = prove(&program);
        for options in EmulateOptions::various(&program, 1) {
            let run = emulate(&program, &options);
            prop_assert!(!proof.is_ok() || run.is_ok());
        }
    }

    /// A right text with a byte changed, cut off, or a piece taken out is read or refused.
    #[test]
    fn damaged_texts_are_read_or_refused(at: prop::sample::Index, length in 0_usize..40, byte in 32_u8..127) {
        let text = write(&lower(&planned("ring:3", CollectiveKind::Allreduce, Algorithm::Forest), &options(false), &|| false).unwrap());
        let at = at.index(text.len());
        let end = (at + length).min(text.len());
        let cut = format!("{}{}", &text[..at], &text[end..]);
        let changed = format!("{}{}{}", &text[..at], char::from(byte), &text[(at + 1).min(text.len())..]);
        for damaged in [&text[..at], &cut, &changed] {
            if let Ok(program) = parse(damaged) {
                prop_assert_eq!(parse(&write(&program)), Ok(program.clone()));
                let _judged = prove(&program);
            }
        }
    }
}
