//! A wait names a step of another block that exists and publishes its completion.

use super::model::Model;
use super::place::Findings;
use crate::msccl::program::Operation;

pub(super) fn check(model: &Model<'_>, findings: &mut Findings<'_>) {
    let mut is_waited_for = vec![false; model.steps.len()];
    for index in 0..model.steps.len() {
        check_wait(model, index, &mut is_waited_for, findings);
        check_nop_chain(model, index, findings);
    }
    for (index, step) in model.steps.iter().enumerate() {
        if step.step.is_awaited && !is_waited_for[index] {
            findings.warning(model.place(index), "hasdep is 1, but no step waits for it");
        }
    }
}

fn check_wait(model: &Model<'_>, index: usize, is_waited_for: &mut [bool], findings: &mut Findings<'_>) {
    let step = model.steps[index].step;
    let place = model.place(index);
    let (block, target) = match (step.wait_block, step.wait_step) {
        (None, None) => return,
        (Some(block), Some(target)) => (block, target),
        _ => {
            return findings
                .problem(place, "only one of depid and deps is -1; set both to -1, or name a step with both");
        }
    };
    if block == model.blocks[model.steps[index].block].block.id {
        return findings.problem(place, "waits for its own block, whose steps run in order anyway");
    }
    let Some(awaited) = model.steps[index].awaited else {
        return findings.problem(place, format!("waits for tb {block} step {target}, which does not exist"));
    };
    is_waited_for[awaited] = true;
    let awaited = model.steps[awaited].step;
    if awaited.operation == Operation::Nop {
        findings.problem(place, format!("waits for tb {block} step {target}, a nop, which signals nothing"));
    } else if !awaited.is_awaited {
        findings.problem(place, format!("waits for tb {block} step {target}, whose hasdep is 0, and may wait forever"));
    }
}

/// A nop lends its dependency to the next step that does something; the runtime refuses or miscounts anything else.
fn check_nop_chain(model: &Model<'_>, index: usize, findings: &mut Findings<'_>) {
    let model_step = &model.steps[index];
    if model_step.step.operation != Operation::Nop {
        return;
    }
    if model_step.step.wait_block.is_none() {
        findings.problem(model.place(index), "a nop without a dependency makes later step numbers drift");
    }
    match model.steps.get(index + 1).filter(|next| next.block == model_step.block) {
        None => findings.problem(model.place(index), "a nop is the last step of its block; put a step after it"),
        Some(next) if next.step.wait_block.is_none() => {
            findings.problem(
                model.place(index + 1),
                "follows a nop but has no dependency itself, so the runtime \
                                                      rejects the file",
            );
        }
        Some(_) => {}
    }
}
