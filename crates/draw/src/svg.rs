//! A writer of SVG: elements and escaped text, in the order in which they are drawn, with coordinates to a tenth.
//!
//! Same calls, same bytes. It knows no fonts beyond the viewer's own and refers to nothing outside the file.

use std::fmt::Write as _;

/// Space at the edges of a sheet.
pub(crate) const MARGIN: f64 = 20.0;
/// Height of a line of sentences.
pub(crate) const LINE: f64 = 18.0;
/// Colour of words.
pub(crate) const INK: &str = "#333333";
/// Colour of lines behind curves and bars.
pub(crate) const GRID: &str = "#dddddd";
/// Height of a line of a title.
const TITLE_LINE: f64 = 22.0;

/// A drawing under way.
#[derive(Debug)]
pub struct Svg {
    text: String,
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A place on the sheet, in units of its view box, from the upper left corner.
pub type Point = (f64, f64);

/// How a shape is painted.
#[derive(Clone, Copy, Debug)]
pub struct Mark<'a> {
    /// Colour of the inside, `none` for none.
    pub fill: &'a str,
    /// Colour of the line, `none` for none.
    pub stroke: &'a str,
    /// Thickness of the line.
    pub width: f64,
    /// Dashes as SVG wants them, empty for a whole line.
    pub dashes: &'a str,
    /// What a viewer shows when asked about the shape, empty for nothing.
    pub note: &'a str,
}

impl<'a> Mark<'a> {
    /// A whole line.
    pub const fn line(stroke: &'a str, width: f64) -> Self {
        Self { fill: "none", stroke, width, dashes: "", note: "" }
    }
}

/// A line from its first point to its last, bent towards those between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Curve {
    Straight([Point; 2]),
    Quadratic([Point; 3]),
    Cubic([Point; 4]),
}

impl Curve {
    fn data(&self) -> String {
        let list = |points: &[Point]| points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>();
        let (points, command) = match self {
            Self::Straight(points) => (list(points), 'L'),
            Self::Quadratic(points) => (list(points), 'Q'),
            Self::Cubic(points) => (list(points), 'C'),
        };
        format!("M{} {command}{}", points[0], points[1..].join(" "))
    }

    /// Its last point, and the one it comes from there.
    pub(crate) const fn end(&self) -> (Point, Point) {
        match self {
            Self::Straight([from, to]) => (*from, *to),
            Self::Quadratic([_, from, to]) | Self::Cubic([_, _, from, to]) => (*from, *to),
        }
    }
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

impl Svg {
    /// A white sheet with a title for readers that do not show it.
    pub fn new(width: u32, height: u32, title: &str) -> Self {
        let title = escaped(title);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        Self { text }
    }

    /// A straight line; `dashes` as SVG wants them, empty for none.
    pub fn line(&mut self, from: Point, to: Point, colour: &str, dashes: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", escaped(dashes)) };
        self.push(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{}\"{dashes}/>",
            escaped(colour)
        ));
    }

    /// A line through points, with a dot at each.
    pub fn curve(&mut self, points: &[Point], colour: &str) {
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = escaped(colour);
        self.push(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            list.join(" ")
        ));
        for (x, y) in points {
            self.push(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
        }
    }

    /// A text.
    pub fn text(&mut self, (x, y): Point, anchor: Anchor, colour: &str, words: &str) {
        let (anchor, colour, words) = (anchor.name(), escaped(colour), escaped(words));
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// A text of a size of its own, bold or not.
    pub fn words(&mut self, (x, y): Point, anchor: Anchor, (size, is_bold): (u32, bool), words: &str) {
        let (anchor, words) = (anchor.name(), escaped(words));
        let weight = if is_bold { " font-weight=\"bold\"" } else { "" };
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{weight}>{words}</text>"
        ));
    }

    /// The lines of a title from the upper left corner on, and sentences below it.
    pub(crate) fn heading(&mut self, title: &[String], notes: &[String]) {
        for (number, line) in title.iter().enumerate() {
            self.words((MARGIN, MARGIN + 14.0 + TITLE_LINE * real(number)), Anchor::Start, (16, true), line);
        }
        let below = heading_bottom(title, &[]) + 10.0;
        for (number, line) in notes.iter().enumerate() {
            self.text((MARGIN, below + LINE * real(number)), Anchor::Start, INK, line);
        }
    }

    /// A rectangle with round corners.
    pub fn plate(&mut self, (x, y): Point, (width, height): (f64, f64), radius: f64, mark: &Mark<'_>) {
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius:.1}\"");
        self.shape("rect", &place, mark);
    }

    /// A filled shape with these corners.
    pub(crate) fn polygon(&mut self, corners: &[Point], mark: &Mark<'_>) {
        let list: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.shape("polygon", &format!("points=\"{}\"", list.join(" ")), mark);
    }

    /// A curve.
    pub(crate) fn stroke(&mut self, curve: &Curve, mark: &Mark<'_>) {
        self.shape("path", &format!("d=\"{}\"", curve.data()), mark);
    }

    fn shape(&mut self, name: &str, place: &str, mark: &Mark<'_>) {
        let mut text = format!("<{name} {place} fill=\"{}\"", escaped(mark.fill));
        if mark.stroke != "none" {
            text += &format!(" stroke=\"{}\"", escaped(mark.stroke));
        }
        if mark.stroke != "none" && (mark.width - 1.0).abs() > 0.01 {
            text += &format!(" stroke-width=\"{:.1}\"", mark.width);
        }
        if !mark.dashes.is_empty() {
            text += &format!(" stroke-dasharray=\"{}\"", escaped(mark.dashes));
        }
        match mark.note.is_empty() {
            true => text += "/>",
            false => text += &format!("><title>{}</title></{name}>", escaped(mark.note)),
        }
        self.push(&text);
    }

    /// The finished file.
    pub fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    fn push(&mut self, element: &str) {
        let _infallible = writeln!(self.text, "{element}");
    }
}

/// How far down a [heading](Svg::heading) goes.
pub(crate) fn heading_bottom(title: &[String], notes: &[String]) -> f64 {
    MARGIN + TITLE_LINE * real(title.len()) + LINE * real(notes.len())
}

/// A number for a place.
#[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
pub(crate) fn real(number: usize) -> f64 {
    number as f64
}

/// Text as XML and HTML may hold it, in content and in attributes: what XML forbids is left out.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    /// Names of nodes may hold whatever a file says.
    #[test]
    fn any_text_gives_well_formed_xml() {
        let mut svg = Svg::new(10, 10, "a<b & \"c\"\u{1}\u{ffff}");
        svg.text((1.0, 2.04), Anchor::End, "red\" onload=\"x", "]]> <script> 'µ'");
        svg.curve(&[(0.0, 1.0), (2.5, 3.25)], "blue");
        svg.line((0.0, 0.0), (1.0, 1.0), "black", "4 2");
        svg.plate((0.0, 0.0), (1.0, 1.0), 2.0, &Mark { note: "<script>alert(1)</script>", ..Mark::line("\"", 2.0) });
        svg.polygon(&[(0.0, 0.0), (1.0, 1.0)], &Mark { fill: "<", ..Mark::line("none", 1.0) });
        svg.stroke(&Curve::Quadratic([(0.0, 0.0), (1.0, 1.0), (2.0, 0.5)]), &Mark::line("red", 1.0));
        svg.words((1.0, 1.0), Anchor::Start, (14, true), "</text><script>");
        let text = svg.finish();
        let mut reader = Reader::from_str(&text);
        let (mut depth, mut names) = (0, Vec::new());
        loop {
            match reader.read_event().expect("well-formed XML") {
                Event::Eof => break,
                Event::Start(element) => {
                    depth += 1;
                    names.push(element.name().as_ref().to_owned());
                    assert!(element.attributes().all(|attribute| attribute.is_ok()));
                }
                Event::Empty(element) => {
                    names.push(element.name().as_ref().to_owned());
                    assert!(element.attributes().all(|attribute| attribute.is_ok()));
                }
                Event::End(_) => depth -= 1,
                _ => {}
            }
        }
        assert_eq!(depth, 0);
        assert_eq!(
            names,
            [
                "svg", "title", "rect", "text", "polyline", "circle", "circle", "line", "rect", "title", "polygon",
                "path", "text",
            ]
        );
        assert!(!text.contains("<script>") && text.contains("x=\"1.0\" y=\"2.0\""), "{text}");
    }
}
