//! A box of each class: its ranks, what joins them, and its NICs by how busy they are.

use canopy_schedule::{BoxClass, BoxClasses, LinkKind, Seating, Stages};
use canopy_topology::{LinkIndex, Rank};

use super::{ByClassDrawing, Parts, WIDTH, moved, range, spread};
use crate::network::FRAME;
use crate::svg::{Anchor, INK, LINE, MARGIN, Mark, Point, real};
use crate::wires::Busy;
use crate::words::{count, wrapped};

/// Most classes that are drawn.
const CLASSES_MAX: usize = 9;
/// Least width of a card, and width of a place in it.
const CARD_MIN: f64 = 280.0;
const PLACE: f64 = 13.0;
/// Space between cards.
const GAP: f64 = 20.0;
/// Height of the picture in a card.
const PICTURE: f64 = 112.0;
/// Lines of words in a card.
const LINES: usize = 6;
/// What is not there any more.
const MISSING: &str = "#b00020";

/// Draws the cards, a few in each row.
pub(super) fn draw(drawing: &ByClassDrawing<'_>, rule: &Stages, found: &BoxClasses, parts: &mut Parts) {
    let Ok(seating) = rule.grid.seating(drawing.topology.rank_count()) else { return };
    parts.begin("Boxes by class");
    let places = f64::from(rule.grid.places);
    let width = (places * PLACE + 2.0 * GAP).clamp(CARD_MIN, WIDTH - 2.0 * MARGIN);
    let height = PICTURE + LINE * real(LINES) + 16.0;
    let mut corner = (MARGIN, parts.y);
    for (number, class) in found.classes.iter().take(CLASSES_MAX).enumerate() {
        if corner.0 + width > WIDTH - MARGIN + 1.0 {
            corner = (MARGIN, corner.1 + height + GAP);
        }
        let faults = drawing.faults.get(number).map_or("", String::as_str);
        card(drawing, &seating, class, faults, (corner, (width, height)), parts);
        corner.0 += width + GAP;
    }
    parts.y = corner.1 + height + 4.0;
    if found.classes.len() > CLASSES_MAX {
        parts.say(&format!("and {} more classes of boxes", found.classes.len() - CLASSES_MAX));
    }
}

fn card(
    drawing: &ByClassDrawing<'_>,
    seating: &Seating,
    class: &BoxClass,
    faults: &str,
    (corner, size): (Point, (f64, f64)),
    parts: &mut Parts,
) {
    let boxes = if class.boxes == 1 { "1 box".to_owned() } else { format!("{} boxes", class.boxes) };
    parts.svg.plate(corner, size, 10.0, &Mark { fill: FRAME, ..Mark::line("#aab4be", 1.0) });
    let head = format!("{boxes} of {}", count(class.ranks(), "rank"));
    parts.svg.words(moved(corner, 12.0, 20.0), Anchor::Start, (12, true), &head);
    picture(drawing, seating, class, (moved(corner, 12.0, 30.0), size.0 - 24.0), parts);
    let mut words = vec![format!("NIC: {} chunks{}", range(class.nic), part(drawing, class.busiest_nic))];
    words.push(format!("box: {} chunks out, {} in", range(class.out), range(class.into)));
    words.extend(class.busiest_inner.map(|link| format!("inside: {} busy", drawing.percent(link))));
    if !faults.is_empty() {
        words.push(faults.to_owned());
    }
    let lines = words.iter().flat_map(|line| wrapped(line, 11, size.0 - 24.0, 2)).take(LINES);
    for (number, line) in lines.enumerate() {
        let at = moved(corner, 12.0, PICTURE + 20.0 + LINE * real(number));
        parts.svg.text(at, Anchor::Start, INK, &line);
    }
}

fn part(drawing: &ByClassDrawing<'_>, link: Option<LinkIndex>) -> String {
    link.map_or_else(String::new, |link| format!(", {} busy", drawing.percent(link)))
}

/// What joins the ranks above, the ranks, and a NIC below each, of the box with the busiest NIC.
fn picture(
    drawing: &ByClassDrawing<'_>,
    seating: &Seating,
    class: &BoxClass,
    (corner, width): (Point, f64),
    parts: &mut Parts,
) {
    let inner = class.busiest_inner.map_or(Busy::Unknown, |link| drawing.busy(link));
    let mark = Mark { fill: inner.colour(), ..Mark::line("none", 1.0) };
    parts.svg.plate(corner, (width, 10.0), 3.0, &mark);
    let radius = (width / f64::from(class.places.max(1)) / 2.0 - 1.0).clamp(2.0, 8.0);
    for (place, x) in (0..class.places).zip(spread(class.places as usize, width)) {
        let (rank_y, nic_y) = (34.0, 66.0);
        let Some(rank) = seating.rank(class.busiest, place) else {
            let missing = Mark { fill: "white", stroke: MISSING, width: 1.2, dashes: "3 2", note: "missing" };
            plate(moved(corner, x, rank_y), radius, radius, &missing, parts);
            continue;
        };
        let [above, below] = [moved(corner, x, 10.0), moved(corner, x, rank_y - radius)];
        parts.svg.line(above, below, inner.colour(), "");
        let name = &drawing.topology.node(Rank::new(rank).node()).id;
        let note = format!("{name}, rank {rank}");
        let fill = Mark { fill: "white", stroke: INK, width: 1.2, dashes: "", note: &note };
        plate(moved(corner, x, rank_y), radius, radius, &fill, parts);
        match nic(drawing, rank) {
            Some(busy) => {
                parts.svg.line(moved(corner, x, rank_y + radius), moved(corner, x, nic_y - radius), busy.colour(), "");
                let words = busy.words();
                let mark = Mark { fill: busy.colour(), stroke: "none", width: 1.0, dashes: "", note: words };
                plate(moved(corner, x, nic_y), radius, 2.0, &mark, parts);
            }
            None => {
                let mark = Mark { fill: "white", stroke: MISSING, width: 1.2, dashes: "3 2", note: "no NIC" };
                plate(moved(corner, x, nic_y), radius, 2.0, &mark, parts);
            }
        }
    }
}

/// A plate around a point.
fn plate((x, y): Point, half: f64, round: f64, mark: &Mark<'_>, parts: &mut Parts) {
    parts.svg.plate((x - half, y - half), (2.0 * half, 2.0 * half), round, mark);
}

/// How busy the busiest NIC link of a rank is, in and out; `None` without one.
fn nic(drawing: &ByClassDrawing<'_>, rank: u32) -> Option<Busy> {
    let topology = drawing.topology;
    let kind = |link: LinkIndex| {
        let class = drawing.classes.class_of.get(link.index()).copied().unwrap_or(0);
        drawing.classes.links.get(class as usize).map(|class| &class.kind)
    };
    let node = Rank::new(rank).node();
    let up = topology.links_from(node).filter(|&link| kind(link) == Some(&LinkKind::NicUp));
    let both = up.flat_map(|link| {
        let back = topology.links_from(topology.link(link).to).find(|&back| topology.link(back).to == node);
        [Some(link), back].into_iter().flatten()
    });
    both.map(|link| drawing.busy(link)).max()
}
