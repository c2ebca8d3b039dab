//! Each connection has one block at each end, and the ends agree on every transfer.

use std::collections::BTreeMap;

use super::model::{Connection, Model};
use super::place::Findings;

/// Sender, receiver, channel.
type Name = (u32, u32, u32);

#[derive(Default)]
struct Ends {
    sender: Option<usize>,
    receiver: Option<usize>,
}

/// Resolves the connections of the model; complete only when nothing was found.
pub(super) fn check(model: &mut Model<'_>, findings: &mut Findings<'_>) {
    let ends = collect_ends(model, findings);
    for ((from, to, channel), ends) in ends {
        let missing = match ends {
            Ends { sender: Some(sender), receiver: Some(receiver) } => {
                join(model, sender, receiver, findings);
                continue;
            }
            Ends { sender: Some(block), .. } => {
                (block, format!("rank {to} has no block that receives from rank {from}"))
            }
            Ends { receiver: Some(block), .. } => (block, format!("rank {from} has no block that sends to rank {to}")),
            Ends { .. } => continue,
        };
        findings.problem(model.place_of_block(missing.0), format!("{} on channel {channel}", missing.1));
    }
}

fn collect_ends(model: &Model<'_>, findings: &mut Findings<'_>) -> BTreeMap<Name, Ends> {
    let mut connections: BTreeMap<Name, Ends> = BTreeMap::new();
    for (index, block) in model.blocks.iter().enumerate() {
        let (own, channel) = (model.ranks[block.rank].rank.rank, block.block.channel);
        if let Some(to) = block.block.send {
            let end = &mut connections.entry((own, to, channel)).or_default().sender;
            if end.replace(index).is_some() {
                let text =
                    format!("a second block sends to rank {to} on channel {channel}, but a queue has one writer");
                findings.problem(model.place_of_block(index), text);
            }
        }
        if let Some(from) = block.block.receive {
            let end = &mut connections.entry((from, own, channel)).or_default().receiver;
            if end.replace(index).is_some() {
                let text = format!(
                    "a second block receives from rank {from} on channel {channel}, but a queue has one reader"
                );
                findings.problem(model.place_of_block(index), text);
            }
        }
    }
    connections
}

fn join(model: &mut Model<'_>, sender: usize, receiver: usize, findings: &mut Findings<'_>) {
    let number = model.connections.len();
    model.connections.push(Connection { sender, receiver });
    model.blocks[sender].sends_on = Some(number);
    model.blocks[receiver].receives_on = Some(number);
    let sends = model.blocks[sender].steps.clone().filter(|&step| model.steps[step].step.operation.sends());
    let sends: Vec<usize> = sends.collect();
    let receives = model.blocks[receiver].steps.clone().filter(|&step| model.steps[step].step.operation.receives());
    let receives: Vec<usize> = receives.collect();
    if sends.len() != receives.len() {
        let (sent, received, peer) = (sends.len(), receives.len(), model.place_of_block(receiver));
        let text = format!("sends {sent} times, but {peer} receives from it {received} times");
        findings.problem(model.place_of_block(sender), text);
    }
    for (&send, &receive) in sends.iter().zip(&receives) {
        let (sent, received) = (model.steps[send].step.chunk_count, model.steps[receive].step.chunk_count);
        if sent != received {
            let text = format!("sends {sent} chunks, but {} receives {received}", model.place(receive));
            findings.problem(model.place(send), text);
        }
        model.steps[receive].sender = Some(send);
    }
}
