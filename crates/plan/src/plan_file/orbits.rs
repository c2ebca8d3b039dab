//! The member `orbits`: trees of few ranks, and the symmetries that make all others of them.

use canopy_schedule::{Generator, Motion, Orbits, Patch, Template, Turn};
use serde::{Deserialize, Serialize};

use super::PlanFileError;
use super::rules::{ActionName, SeatsDocument};

/// A forest, as short as it can be told.
#[derive(Deserialize, Serialize)]
pub(super) struct OrbitsDocument {
    actions: Vec<ActionName>,
    seat_count: u32,
    seats: SeatsDocument,
    generators: Vec<GeneratorDocument>,
    templates: Vec<TemplateDocument>,
    /// Template, child, parent, and roots: the first, then how much greater than the one before each next one is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    patches: Vec<(u32, u32, u32, Vec<u32>)>,
}

#[derive(Deserialize, Serialize)]
struct GeneratorDocument {
    order: u32,
    #[serde(flatten)]
    motion: MotionDocument,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum MotionDocument {
    /// First node, number of nodes, unit, size, step.
    Turns(Vec<(u32, u32, u32, u32, u32)>),
    Table(Vec<u32>),
}

#[derive(Deserialize, Serialize)]
struct TemplateDocument {
    root: u32,
    weight: u64,
    parents: ParentsDocument,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    over: Vec<(u32, Vec<u32>)>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum ParentsDocument {
    /// Differences between parents and seats, and which one each seat has: a letter for each, `A` for the first.
    Steps(Vec<i64>, String),
    Listed(Vec<u32>),
}

/// Letters of differences.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl From<&Orbits> for OrbitsDocument {
    fn from(orbits: &Orbits) -> Self {
        let generators = orbits.generators.iter().map(|generator| GeneratorDocument {
            order: generator.order,
            motion: match &generator.motion {
                Motion::Turns(turns) => MotionDocument::Turns(
                    turns.iter().map(|turn| (turn.first, turn.count, turn.unit, turn.size, turn.step)).collect(),
                ),
                Motion::Table(images) => MotionDocument::Table(images.clone()),
            },
        });
        let templates = orbits.templates.iter().map(|template| TemplateDocument {
            root: template.root,
            weight: template.weight,
            parents: ParentsDocument::of(&template.parents),
            over: template.over.iter().map(|(&seat, switches)| (seat, switches.clone())).collect(),
        });
        let patches = orbits.patches.iter().map(|Patch { template, child, parent, roots }| {
            let before = std::iter::once(0).chain(roots.iter().copied());
            let steps = roots.iter().zip(before).map(|(&root, before)| root.wrapping_sub(before));
            (*template, *child, *parent, steps.collect())
        });
        Self {
            actions: orbits.actions.iter().copied().map(ActionName::from).collect(),
            seat_count: orbits.seat_count,
            seats: SeatsDocument::from(&orbits.seats),
            generators: generators.collect(),
            templates: templates.collect(),
            patches: patches.collect(),
        }
    }
}

impl ParentsDocument {
    fn of(parents: &[u32]) -> Self {
        let mut steps: Vec<i64> = Vec::new();
        let mut letters = String::with_capacity(parents.len());
        for (seat, &parent) in (0_i64..).zip(parents) {
            let step = i64::from(parent) - seat;
            let place = steps.iter().position(|&known| known == step).unwrap_or_else(|| {
                steps.push(step);
                steps.len() - 1
            });
            let Some(&letter) = LETTERS.get(place) else { return Self::Listed(parents.to_vec()) };
            letters.push(letter.into());
        }
        Self::Steps(steps, letters)
    }

    fn parents(self) -> Result<Vec<u32>, PlanFileError> {
        let (steps, letters) = match self {
            Self::Listed(listed) => return Ok(listed),
            Self::Steps(steps, letters) => (steps, letters),
        };
        let parent = |(seat, letter): (i64, u8)| {
            let place = LETTERS.iter().position(|&known| known == letter)?;
            u32::try_from(seat.checked_add(*steps.get(place)?)?).ok()
        };
        let parents = (0..).zip(letters.bytes()).enumerate();
        let parents = parents.map(|(seat, letter)| parent(letter).ok_or(PlanFileError::Parent { seat }));
        parents.collect()
    }
}

impl OrbitsDocument {
    /// The forest, for the checker to judge.
    pub(super) fn into_orbits(self, chunks_per_share: u64) -> Result<Orbits, PlanFileError> {
        let generators = self.generators.into_iter().map(|GeneratorDocument { order, motion }| Generator {
            order,
            motion: match motion {
                MotionDocument::Turns(turns) => Motion::Turns(
                    turns
                        .into_iter()
                        .map(|(first, count, unit, size, step)| Turn { first, count, unit, size, step })
                        .collect(),
                ),
                MotionDocument::Table(images) => Motion::Table(images),
            },
        });
        let templates = self.templates.into_iter().map(|TemplateDocument { root, weight, parents, over }| {
            Ok(Template { root, weight, parents: parents.parents()?, over: over.into_iter().collect() })
        });
        let patches = self.patches.into_iter().map(|(template, child, parent, mut roots)| {
            let mut root = 0_u32;
            for step in &mut roots {
                root = root.wrapping_add(*step);
                *step = root;
            }
            Patch { template, child, parent, roots }
        });
        Ok(Orbits {
            chunks_per_share,
            actions: self.actions.into_iter().map(Into::into).collect(),
            seat_count: self.seat_count,
            seats: self.seats.into(),
            generators: generators.collect(),
            templates: templates.collect::<Result<_, PlanFileError>>()?,
            patches: patches.collect(),
        })
    }
}
