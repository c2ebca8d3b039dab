//! A plan by a rule: a box of each class with its NICs, what one rank exchanges in each stage, or what one rank of a
//! torus sends in each dimension, and how busy links of each class are.

mod bars;
mod boxes;
mod stages;
mod torus;

use canopy_schedule::{ByClass, RuleClasses, Shape};
use canopy_topology::{LinkIndex, Topology};

use crate::network::pixels;
use crate::svg::{Anchor, INK, LINE, MARGIN, Point, Svg, heading_bottom, real};
use crate::wires::Busy;
use crate::words::wrapped;

/// Width of the sheet.
const WIDTH: f64 = 920.0;
/// Space above the name of a part of the drawing, and below it.
const ABOVE: f64 = 34.0;
const BELOW: f64 = 16.0;

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct ByClassDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// Sentences below it.
    pub notes: &'a [String],
    /// The network.
    pub topology: &'a Topology,
    /// The rule, which was judged on it.
    pub shape: &'a Shape,
    /// What the judge counted.
    pub classes: &'a ByClass,
    /// What is wrong with the boxes of each class, in the order of the classes; missing ones have no faults.
    pub faults: &'a [String],
}

/// Draws a plan by classes.
///
/// * **Out.** An SVG of its own, without scripts, fonts or references; the same bytes for the same input.
/// * **Cost.** O(links + what is drawn): a dozen classes at most.
pub fn draw_by_class(drawing: &ByClassDrawing<'_>) -> String {
    let text_width = WIDTH - 2.0 * MARGIN;
    // Bold letters are wider.
    let title = wrapped(drawing.title, 16, text_width * 0.85, 2);
    let notes: Vec<String> = drawing.notes.iter().flat_map(|note| wrapped(note, 12, text_width, 3)).collect();
    // Parts are drawn below each other; how high the sheet is follows from them.
    let mut parts = Parts { svg: Svg::new(0, 0, ""), y: heading_bottom(&title, &notes) };
    drawn(drawing, &mut parts);
    let height = parts.y + MARGIN;
    let mut parts =
        Parts { svg: Svg::new(pixels(WIDTH), pixels(height), drawing.title), y: heading_bottom(&title, &notes) };
    parts.svg.heading(&title, &notes);
    drawn(drawing, &mut parts);
    parts.svg.finish()
}

fn drawn(drawing: &ByClassDrawing<'_>, parts: &mut Parts) {
    match (drawing.shape, &drawing.classes.rule) {
        (Shape::Stages(rule), RuleClasses::Stages(found)) => {
            boxes::draw(drawing, rule, found, parts);
            stages::draw(drawing, rule, parts);
        }
        (_, RuleClasses::Orbits(found)) => torus::draw(drawing, found, parts),
        (_, RuleClasses::Stages(_)) => {}
    }
    bars::links(drawing, parts);
    bars::legend(parts);
}

/// The drawing under way, and how far down it is.
struct Parts {
    svg: Svg,
    y: f64,
}

impl Parts {
    /// Begins a part with its name.
    fn begin(&mut self, name: &str) {
        self.y += ABOVE;
        self.svg.words((MARGIN, self.y), Anchor::Start, (14, true), name);
        self.y += BELOW;
    }

    /// A line of words at the left.
    fn say(&mut self, words: &str) {
        for line in wrapped(words, 12, WIDTH - 2.0 * MARGIN, 3) {
            self.svg.text((MARGIN, self.y + 12.0), Anchor::Start, INK, &line);
            self.y += LINE;
        }
    }
}

impl ByClassDrawing<'_> {
    /// How busy a link is.
    fn busy(&self, link: LinkIndex) -> Busy {
        let capacity = self.topology.link(link).capacity.bytes_per_sec();
        Busy::of(&self.classes.busy(self.topology, self.classes.chunks(link), capacity))
    }

    /// `99.9 %` of the time, rounded down so that only the whole is 100 %.
    fn percent(&self, link: LinkIndex) -> String {
        let capacity = self.topology.link(link).capacity.bytes_per_sec();
        let part = self.classes.busy(self.topology, self.classes.chunks(link), capacity).to_f64();
        format!("{:.1} %", (part * 1e3).floor() / 10.0)
    }
}

/// `7`, or `7 to 9`.
fn range((least, most): (u128, u128)) -> String {
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}

/// A point so far to the right and down.
fn moved((x, y): Point, right: f64, down: f64) -> Point {
    (x + right, y + down)
}

/// Places of so many things in a width, their middles.
fn spread(count: usize, width: f64) -> impl Iterator<Item = f64> {
    let each = width / real(count.max(1));
    (0..count).map(move |number| each * (real(number) + 0.5))
}

#[cfg(test)]
mod tests;
