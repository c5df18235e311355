//! The smallest part around a line.

use super::outline;
use code::outline::part_at;

#[test]
fn the_innermost_part_with_its_comment_is_the_block_around_a_line() {
    let text = "use a;\n\n/// About it.\n#[derive(Debug)]\nstruct A {\n    field: u8,\n}\n\nimpl A {\n    fn one(&self) {\n        fn inner() {\n        }\n    }\n\n    const TWO: u8 = 2;\n}\nconst THREE: [u8; 1] = [\n    3,\n];\n";
    let outline = outline("a.rs", text);
    for (line, expected) in [
        (0, None),
        (1, None),
        (2, Some("A")),
        (3, Some("A")),
        (5, Some("A")),
        (6, Some("A")),
        (8, None),
        (9, Some("A/one")),
        (10, Some("A/one/inner")),
        (12, Some("A/one")),
        (14, Some("A/TWO")),
        (17, Some("THREE")),
        (99, None),
    ] {
        let found = part_at(&outline, line).map(code::outline::Part::path);
        assert_eq!(found.as_deref(), expected, "line {line}");
    }
}
