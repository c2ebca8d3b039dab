//! A writer of SVG: elements and escaped text, in the order in which they are drawn, with coordinates to a tenth.
//!
//! Same calls, same bytes. It uses the viewer's own fonts and refers to nothing outside the file. An embedded style
//! swaps the colours where the viewer prefers a dark scheme.

use std::fmt::Write as _;

use canopy_topology::is_invisible;

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

/// Colours and what replaces them on dark paper. A colour that is missing here is legible on both.
const DARK: [(&str, &str); 34] = [
    ("white", "#14191f"),
    ("black", "#e4e9ee"),
    ("#000000", "#ffffff"),
    (INK, "#d5dce3"),
    (GRID, "#39434d"),
    // Frames, their edges, switches.
    ("#f4f6f8", "#1d242b"),
    ("#aab4be", "#5d6975"),
    ("#e3e8ee", "#2c3640"),
    // Loads of links: the busier, the brighter.
    ("#5b6b7b", "#93a3b3"),
    ("#c3c9d0", "#6b7681"),
    ("#8cc3e0", "#4484ad"),
    ("#3f8fc5", "#5fb0e5"),
    ("#0b4f94", "#b5dcff"),
    ("#e6550d", "#ff8a4c"),
    // Missing links, and the band behind those of a bottleneck.
    ("#b00020", "#ff6b81"),
    ("#ffe9a8", "#7a661c"),
    // Marked nodes.
    ("#ffdf80", "#6e5710"),
    ("#b8e0b0", "#2f5a28"),
    ("#f4c2d7", "#6f3350"),
    ("#c9c2f0", "#46407e"),
    ("#b5e3e3", "#1f5b5b"),
    ("#e8cfae", "#63482a"),
    // Curves and axes.
    ("#b2182b", "#f0616f"),
    ("#1a6b2f", "#4fbf6b"),
    ("#5c4033", "#b98a6f"),
    ("#1f6fb4", "#62aee8"),
    ("#c8501e", "#f08a5a"),
    ("#2e8b57", "#4db37b"),
    ("#8a4fa3", "#c08bd8"),
    ("#d1478c", "#ea74ac"),
    ("#4d4d4d", "#b5b5b5"),
    ("#7f7f7f", "#a0a0a0"),
    ("#8c6bb1", "#a98bcb"),
    ("#d62790", "#ec62b0"),
];

/// A drawing under way.
#[derive(Debug)]
pub struct Svg {
    text: String,
    /// Where the style goes.
    head: usize,
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

    /// Points along it that are close together, from the first to the last.
    pub(crate) fn points(&self) -> Vec<Point> {
        let between = |a: Point, b: Point, part: f64| (a.0 + (b.0 - a.0) * part, a.1 + (b.1 - a.1) * part);
        let at = |part: f64| {
            let mut points: Vec<Point> = match self {
                Self::Straight(points) => points.to_vec(),
                Self::Quadratic(points) => points.to_vec(),
                Self::Cubic(points) => points.to_vec(),
            };
            while points.len() > 1 {
                points = points.windows(2).map(|pair| between(pair[0], pair[1], part)).collect();
            }
            points[0]
        };
        (0..=16).map(|number| at(real(number) / 16.0)).collect()
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
    /// An empty sheet, white or dark as the viewer prefers, with a title for screen readers.
    pub fn new(width: u32, height: u32, title: &str) -> Self {
        let title = escaped(title);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"black\">\n<title>{title}</title>\n"
        );
        let head = text.len();
        text += &format!("<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n");
        Self { text, head }
    }

    /// A description of the whole for screen readers, after the title.
    pub(crate) fn describe(&mut self, words: &str) {
        let element = format!("<desc>{}</desc>\n", escaped(words));
        self.text.insert_str(self.head, &element);
        self.head += element.len();
    }

    /// Begins shapes that belong together: a viewer shows the note when asked about any of them.
    pub(crate) fn open(&mut self, note: &str) {
        self.push(&format!("<g><title>{}</title>", escaped(note)));
    }

    /// Ends what [`open`](Self::open) began.
    pub(crate) fn close(&mut self) {
        self.push("</g>");
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

    /// The bold name of a frame, legible over lines: its letters have an edge in the colour behind them.
    pub(crate) fn name(&mut self, (x, y): Point, behind: &str, words: &str) {
        let (behind, words) = (escaped(behind), escaped(words));
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"bold\" stroke=\"{behind}\" stroke-width=\"4\" \
             stroke-linejoin=\"round\" paint-order=\"stroke\">{words}</text>"
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
        self.text.insert_str(self.head, &dark_style(&self.text));
        self.text
    }

    fn push(&mut self, element: &str) {
        let _infallible = writeln!(self.text, "{element}");
    }
}

/// The style for a dark scheme: a rule for each colour that the drawing uses.
fn dark_style(drawing: &str) -> String {
    let mut style = "<style>@media (prefers-color-scheme: dark) {".to_owned();
    for (light, dark) in DARK {
        for name in ["fill", "stroke"] {
            let selector = format!("{name}=\"{light}\"");
            if drawing.contains(&selector) {
                style += &format!(" [{selector}] {{ {name}: {dark}; }}");
            }
        }
    }
    style + " }</style>\n"
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
            c if is_invisible(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
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
                "svg", "title", "style", "rect", "text", "polyline", "circle", "circle", "line", "rect", "title",
                "polygon", "path", "text",
            ]
        );
        assert!(!text.contains("<script>") && text.contains("x=\"1.0\" y=\"2.0\""), "{text}");
    }

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: &str) -> f64 {
        let part = |from: usize| f64::from(u8::from_str_radix(&colour[from..from + 2], 16).unwrap()) / 255.0;
        let linear = |part: f64| if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Words on paper and on plates have 4.5 to 1, lines on paper 3 to 1, but for the grid, which only guides the eye.
    #[test]
    fn dark_colours_have_contrast() {
        let dark = |light: &str| DARK.iter().find(|(from, _)| *from == light).unwrap().1;
        let (paper, ink) = (dark("white"), dark(INK));
        let surfaces = ["#f4f6f8", "#e3e8ee", "#ffdf80", "#b8e0b0", "#f4c2d7", "#c9c2f0", "#b5e3e3", "#e8cfae"];
        for surface in surfaces {
            assert!(contrast(ink, dark(surface)) >= 4.5, "{surface}");
        }
        assert!(contrast(ink, paper) >= 4.5 && contrast(dark("black"), paper) >= 4.5);
        let faint = ["white", GRID];
        for (light, colour) in DARK {
            if !faint.contains(&light) && !surfaces.contains(&light) {
                assert!(contrast(colour, paper) >= 3.0, "{light}: {colour} on {paper}");
            }
        }
        assert_eq!(DARK.iter().map(|(light, _)| light).collect::<std::collections::BTreeSet<_>>().len(), DARK.len());
    }

    #[test]
    fn the_style_has_a_rule_for_each_colour_in_use() {
        let mut svg = Svg::new(10, 10, "");
        svg.line((0.0, 0.0), (1.0, 1.0), GRID, "");
        let drawn = svg.finish();
        assert!(drawn.contains("[fill=\"white\"] { fill: #14191f; }"), "{drawn}");
        assert!(drawn.contains("[stroke=\"#dddddd\"] { stroke: #39434d; }") && !drawn.contains("#ffdf80"), "{drawn}");
    }
}
