//! A writer of SVG: elements and escaped text, in the order in which they are drawn, with coordinates to a tenth.
//!
//! Same calls, same bytes. It knows no fonts beyond the viewer's own and refers to nothing outside the file.

use std::fmt::Write as _;

/// A drawing under way.
#[derive(Debug)]
pub(crate) struct Svg {
    text: String,
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
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
    pub(crate) fn new(width: u32, height: u32, title: &str) -> Self {
        let title = escaped(title);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        Self { text }
    }

    /// A straight line; `dashes` as SVG wants them, empty for none.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, dashes: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", escaped(dashes)) };
        self.push(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{}\"{dashes}/>",
            escaped(colour)
        ));
    }

    /// A line through points, with a dot at each.
    pub(crate) fn curve(&mut self, points: &[(f64, f64)], colour: &str) {
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
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, colour: &str, words: &str) {
        let (anchor, colour, words) = (anchor.name(), escaped(colour), escaped(words));
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
        ));
    }

    /// The finished file.
    pub(crate) fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    fn push(&mut self, element: &str) {
        let _infallible = writeln!(self.text, "{element}");
    }
}

/// Text as XML may hold it, in content and in attributes: what XML forbids is left out.
fn escaped(text: &str) -> String {
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
        assert_eq!(names, ["svg", "title", "rect", "text", "polyline", "circle", "circle", "line"]);
        assert!(!text.contains("<script>") && text.contains("x=\"1.0\" y=\"2.0\""), "{text}");
    }
}
