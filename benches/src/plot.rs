//! Line plots as SVG, both axes logarithmic, so that whatever grows as a power is straight and its slope is the power.
//!
//! A picture has its own background, light or dark as whoever looks at it prefers, and lines differ in their marks as
//! well as in their colours.

use std::fmt::Write as _;

/// What is drawn beside other plots in one picture.
pub struct Plot {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// What the lines are compared with: dashed, and not asked when the axes are chosen.
    pub guides: Vec<Line>,
}

#[derive(Clone, Copy)]
pub struct Axis {
    pub name: &'static str,
    pub unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Milliseconds,
    Number,
}

#[derive(Clone)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// Through everything in proportion to where another line ends, a little above it.
    pub fn in_proportion(lines: &[Self], name: &str) -> Self {
        let ends = lines.iter().filter_map(|line| line.points.last());
        let (x, y) = ends.fold((1.0, 0.0), |top, end| if end.1 > top.1 { *end } else { top });
        let at = |share: f64| (x * share, 2.0 * y * share);
        Self { name: name.into(), points: vec![at(1e-9), at(1e9)] }
    }
}

impl Unit {
    /// A number of this unit, as it is read.
    pub fn name(self, number: usize) -> String {
        let (names, mut number): (&[&str], _) = match self {
            Self::Bytes => (&[" B", " KB", " MB", " GB"], number),
            Self::Milliseconds => (&[" ms"], number),
            Self::Number => (&[""], number),
        };
        let mut names = names.iter();
        let mut name = names.next();
        while number >= 1000 && number.is_multiple_of(1000) && names.len() > 0 {
            (number, name) = (number / 1000, names.next());
        }
        let digits = number.to_string();
        let mut shown = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                shown.push(',');
            }
            shown.push(digit);
        }
        shown + name.unwrap_or(&"")
    }

    /// A power of ten in this unit.
    fn power(self, exponent: i32) -> String {
        let (names, smallest): (&[&str], i32) = match self {
            Self::Bytes => (&[" B", " KB", " MB", " GB", " TB"], 0),
            Self::Milliseconds => (&[" ns", " µs", " ms", " s", ",000 s"], -6),
            Self::Number => (&["", ",000", ",000,000"], 0),
        };
        let steps = (exponent - smallest).max(0);
        let group = usize::try_from(steps / 3).unwrap_or_default().min(names.len() - 1);
        let zeros = usize::try_from(steps).unwrap_or_default() - 3 * group;
        format!("1{}{}", "0".repeat(zeros), names[group])
    }
}

/// Plots beside each other.
const COLUMNS: usize = 2;
const WIDTH: f64 = 440.0;
/// Around the field with the lines.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const FIELD: f64 = 250.0;
const BELOW: f64 = 48.0;
/// A row of the legend.
const ROW: f64 = 19.0;
const MARKS: usize = 6;

/// The paper, what is written, what is written beside, the grid, and each line.
type Colours = [&'static str; 4 + MARKS];
const LIGHT: Colours = [
    "#ffffff", "#1f2328", "#59636e", "#d8dee4", "#0969da", "#bc4c00", "#1a7f37", "#8250df",
    "#bf3989", "#7d5a00",
];
const DARK: Colours = [
    "#0d1117", "#e6edf3", "#9198a1", "#30363d", "#58a6ff", "#f0883e", "#3fb950", "#bc8cff",
    "#f778ba", "#d29922",
];

fn style() -> String {
    // Without variables: not everything that shows pictures knows them.
    let paint = |[paper, ink, faint, grid, lines @ ..]: Colours| {
        let mut rules = format!(
            "text {{ fill: {ink} }} .faint {{ fill: {faint} }} .paper, .mark {{ fill: {paper} }}\n\
             .grid {{ stroke: {grid} }} .guide {{ stroke: {faint} }}\n"
        );
        for (number, line) in lines.iter().enumerate() {
            let _ = write!(rules, ".c{number} {{ stroke: {line} }} ");
        }
        rules
    };
    format!(
        "text {{ font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }}\n\
         .title {{ font-size: 14px; font-weight: 600 }}\n\
         .guide {{ stroke-width: 1.5; stroke-dasharray: 6 4; fill: none }}\n\
         .line {{ stroke-width: 2; stroke-linejoin: round; fill: none }} .mark {{ stroke-width: 2 }}\n\
         {}\n@media (prefers-color-scheme: dark) {{\n{}\n}}",
        paint(LIGHT),
        paint(DARK)
    )
}

/// One picture of all plots.
#[expect(clippy::cast_precision_loss, reason = "a handful")]
pub fn draw(plots: &[Plot]) -> String {
    let width = WIDTH * COLUMNS.min(plots.len()) as f64;
    let (mut inside, mut height, mut number) = (String::new(), 0.0, 0);
    for row in plots.chunks(COLUMNS) {
        for (column, plot) in row.iter().enumerate() {
            let x = WIDTH * column as f64;
            let _ = writeln!(inside, "<g transform=\"translate({x}, {height})\">");
            plot.draw(number, &mut inside);
            inside.push_str("</g>\n");
            number += 1;
        }
        let entries = row.iter().map(|plot| legend_rows(plot).len()).max().unwrap_or_default();
        height += TOP + FIELD + BELOW + ROW * entries as f64 + 12.0;
    }
    let titles: Vec<_> = plots.iter().map(|plot| plot.title).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<style>\n{}\n</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{inside}</svg>\n",
        escaped(&titles.join("; ")),
        style()
    )
}

impl Plot {
    fn draw(&self, number: usize, picture: &mut String) {
        let field = Field::around(&self.lines);
        let (right, bottom) = (WIDTH - RIGHT, TOP + FIELD);
        let _ = writeln!(
            picture,
            "<text class=\"title\" x=\"{LEFT}\" y=\"22\">{}</text>",
            escaped(self.title)
        );
        self.draw_axes(&field, picture);
        let _ = writeln!(
            picture,
            "<clipPath id=\"field{number}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{FIELD}\"/></clipPath>",
            right - LEFT
        );
        for guide in &self.guides {
            let path = field.path(&guide.points);
            let _ = writeln!(
                picture,
                "<path class=\"guide\" clip-path=\"url(#field{number})\" d=\"{path}\"/>"
            );
        }
        for (index, line) in self.lines.iter().enumerate() {
            let path = field.path(&line.points);
            let _ = writeln!(picture, "<path class=\"line c{}\" d=\"{path}\"/>", index % MARKS);
            for point in &line.points {
                picture.push_str(&mark(index, field.place(*point)));
            }
        }
        let mut y = bottom + BELOW + 8.0;
        for row in legend_rows(self) {
            let mut x = LEFT;
            for (index, name) in row {
                let _ = match index {
                    Some(index) => write!(
                        picture,
                        "<path class=\"line c{}\" d=\"M{x} {y}h22\"/>{}",
                        index % MARKS,
                        mark(index, (x + 11.0, y))
                    ),
                    None => write!(picture, "<path class=\"guide\" d=\"M{x} {y}h22\"/>"),
                };
                let (x_text, y_text) = (x + 28.0, y + 4.0);
                let text = escaped(name);
                let _ = writeln!(picture, "<text x=\"{x_text}\" y=\"{y_text}\">{text}</text>");
                x += entry_width(name);
            }
            y += ROW;
        }
    }

    /// The grid, what it means, and what is along the axes.
    fn draw_axes(&self, field: &Field, picture: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, TOP + FIELD);
        for exponent in field.x.0..=field.x.1 {
            let (x, _) = field.place((10_f64.powi(exponent), 1.0));
            let label = self.x.unit.power(exponent);
            let _ = writeln!(
                picture,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text class=\"faint\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 17.0
            );
        }
        for exponent in field.y.0..=field.y.1 {
            let (_, y) = field.place((1.0, 10_f64.powi(exponent)));
            let label = self.y.unit.power(exponent);
            let _ = writeln!(
                picture,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>\
                 <text class=\"faint\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 7.0,
                y + 4.0
            );
        }
        let (middle, below) = (f64::midpoint(LEFT, right), bottom + 37.0);
        let across = f64::midpoint(TOP, bottom);
        let (x_name, y_name) = (escaped(self.x.name), escaped(self.y.name));
        let _ = writeln!(
            picture,
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{x_name}</text>\
             <text transform=\"translate(16, {across}) rotate(-90)\" text-anchor=\"middle\">{y_name}</text>"
        );
    }
}

/// The field with the lines, by the powers of ten it begins and ends with.
struct Field {
    x: (i32, i32),
    y: (i32, i32),
}

impl Field {
    fn around(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        Self { x: powers(points().map(|point| point.0)), y: powers(points().map(|point| point.1)) }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let along = |value: f64, (first, last): (i32, i32)| {
            (value.log10() - f64::from(first)) / f64::from(last - first)
        };
        let width = WIDTH - RIGHT - LEFT;
        (LEFT + width * along(x, self.x), TOP + FIELD * (1.0 - along(y, self.y)))
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, point) in points.iter().enumerate() {
            let (x, y) = self.place(*point);
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        path
    }
}

/// The powers of ten around all of the values.
fn powers(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let nothing = (f64::MAX, f64::MIN);
    let (low, high) = values.fold(nothing, |(low, high), value| (low.min(value), high.max(value)));
    // What is a power itself, but for the last digit, needs none around it.
    let near = 1e-6;
    #[expect(clippy::cast_possible_truncation, reason = "powers of ten are few")]
    let (first, last) = ((low.log10() + near).floor() as i32, (high.log10() - near).ceil() as i32);
    (first, last.max(first + 1))
}

/// A mark at a place, another one for each line.
fn mark(index: usize, (x, y): (f64, f64)) -> String {
    let shape = match index % MARKS {
        0 => format!("M{:.1} {y:.1}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", x - 3.5),
        1 => format!("M{:.1} {:.1}h6.4v6.4h-6.4z", x - 3.2, y - 3.2),
        2 => format!("M{x:.1} {:.1}l4 7h-8z", y - 4.4),
        3 => format!("M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4z", y - 4.4),
        4 => format!("M{x:.1} {:.1}l4 -7h-8z", y + 4.4),
        _ => format!("M{:.1} {:.1}h9v4h-9z", x - 4.5, y - 2.0),
    };
    format!("<path class=\"mark c{}\" d=\"{shape}\"/>\n", index % MARKS)
}

/// Its entries, as many in a row as there is room for: the number of the line, if it is none of the guides.
fn legend_rows(plot: &Plot) -> Vec<Vec<(Option<usize>, &str)>> {
    let lines = plot.lines.iter().enumerate().map(|(index, line)| (Some(index), &line.name));
    let guides = plot.guides.iter().map(|line| (None, &line.name));
    let mut rows: Vec<Vec<_>> = vec![Vec::new()];
    let mut left = WIDTH - RIGHT - LEFT;
    for (index, name) in lines.chain(guides) {
        let width = entry_width(name);
        if width > left && rows.last().is_some_and(|row| !row.is_empty()) {
            rows.push(Vec::new());
            left = WIDTH - RIGHT - LEFT;
        }
        left -= width;
        if let Some(row) = rows.last_mut() {
            row.push((index, name.as_str()));
        }
    }
    rows
}

/// About as much as it takes.
#[expect(clippy::cast_precision_loss, reason = "a few words")]
fn entry_width(name: &str) -> f64 {
    28.0 + 7.0 * name.chars().count() as f64 + 14.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_have_their_names() {
        let check = |unit: Unit, exponent, name| assert_eq!(unit.power(exponent), name);
        check(Unit::Bytes, 3, "1 KB");
        check(Unit::Bytes, 8, "100 MB");
        check(Unit::Milliseconds, -3, "1 µs");
        check(Unit::Milliseconds, -1, "100 µs");
        check(Unit::Milliseconds, 4, "10 s");
        check(Unit::Number, 0, "1");
        check(Unit::Number, 5, "100,000");
    }

    #[test]
    fn sizes_have_their_names() {
        let check = |unit: Unit, number, name| assert_eq!(unit.name(number), name);
        check(Unit::Bytes, 1_000, "1 KB");
        check(Unit::Bytes, 100_000_000, "100 MB");
        check(Unit::Number, 999, "999");
        check(Unit::Number, 1_000_000, "1,000,000");
    }

    #[test]
    fn axes_begin_and_end_with_powers_around_what_is_shown() {
        assert_eq!(powers([0.02, 30.0].into_iter()), (-2, 2));
        assert_eq!(
            powers([1e3, 1e8].into_iter()),
            (3, 8),
            "powers themselves need none around them"
        );
        assert_eq!(powers([1.0].into_iter()), (0, 1), "there is always something between them");
    }

    #[test]
    fn a_picture_is_whole_and_shows_every_line() {
        let axis = Axis { name: "a < b", unit: Unit::Number };
        let line = |name: &str| Line { name: name.into(), points: vec![(1.0, 1.0), (10.0, 50.0)] };
        let lines = vec![line("one"), line("two")];
        let guides = vec![Line::in_proportion(&lines, "in proportion")];
        let picture = draw(&[Plot { title: "All & more", x: axis, y: axis, lines, guides }]);
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        for words in [">one<", ">two<", ">in proportion<", ">All &amp; more<", ">a &lt; b<"] {
            assert!(picture.contains(words), "{words}");
        }
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
