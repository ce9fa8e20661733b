//! Folded stacks and the flame graph.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use crate::output::escape;

/// A frame and its callees.
#[derive(Default)]
struct Node {
    count: u64,
    children: BTreeMap<Arc<str>, Node>,
}

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
/// Frames narrower than this are not drawn, in units of the picture.
const LEAST: f64 = 0.4;

/// An SVG of all stacks, with the roots at the bottom and each frame's share as a tooltip.
/// Self-contained, without scripts.
pub fn svg(title: &str, stacks: &[(Vec<Arc<str>>, u64)]) -> String {
    let mut root = Node::default();
    for (frames, count) in stacks {
        root.count += count;
        let mut node = &mut root;
        for frame in frames {
            node = node.children.entry(frame.clone()).or_default();
            node.count += count;
        }
    }
    let depth = height(&root, root.count as f64);
    let tall = 40.0 + depth as f64 * ROW;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {tall}\" width=\"{WIDTH}\" height=\"{tall}\"><style>text{{font:11px ui-monospace,'DejaVu Sans Mono',monospace;fill:#111}}.t{{font:15px system-ui,sans-serif}}rect{{stroke:#fff;stroke-width:.5}}</style><rect width=\"{WIDTH}\" height=\"{tall}\" fill=\"#fff\"/><text class=\"t\" x=\"8\" y=\"20\">{} ({} samples)</text>",
        escape(title),
        root.count
    );
    let all = root.count.max(1) as f64;
    let mut at = 0.0;
    for (name, child) in &root.children {
        draw(&mut out, name, child, at, tall - ROW - 4.0, all);
        at += child.count as f64 / all * WIDTH;
    }
    out + "</svg>\n"
}

/// The number of rows that are wide enough to be drawn.
fn height(node: &Node, all: f64) -> usize {
    let wide = |n: &&Node| n.count as f64 / all.max(1.0) * WIDTH >= LEAST;
    node.children
        .values()
        .filter(wide)
        .map(|c| 1 + height(c, all))
        .max()
        .unwrap_or(0)
}

fn draw(out: &mut String, name: &str, node: &Node, x: f64, y: f64, all: f64) {
    let width = node.count as f64 / all * WIDTH;
    if width < LEAST {
        return;
    }
    // Warm colours derived from the name, so that a function has the same colour in all pictures.
    let hash = crate::client::hash(name.as_bytes());
    let color = format!(
        "#{:02x}{:02x}{:02x}",
        205 + hash % 50,
        110 + (hash >> 8) % 110,
        40 + (hash >> 16) % 50
    );
    let share = node.count as f64 / all * 100.0;
    let _ = write!(
        out,
        "<g><title>{} {share:.2} %</title><rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{}\" fill=\"{color}\"/>",
        escape(name),
        ROW - 1.0
    );
    let fits = (width / 6.7) as usize;
    if fits >= 3 {
        let text: String = if name.chars().count() <= fits {
            name.to_owned()
        } else {
            name.chars().take(fits - 1).chain(['…']).collect()
        };
        let _ = write!(
            out,
            "<text x=\"{:.2}\" y=\"{:.1}\">{}</text>",
            x + 2.0,
            y + 12.0,
            escape(&text)
        );
    }
    out.push_str("</g>");
    let mut at = x;
    for (child_name, child) in &node.children {
        draw(out, child_name, child, at, y - ROW, all);
        at += child.count as f64 / all * WIDTH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_names_are_escaped() {
        let stack = |names: &[&str]| {
            names
                .iter()
                .map(|n| Arc::from(*n))
                .collect::<Vec<Arc<str>>>()
        };
        let text = svg(
            "t",
            &[(stack(&["main", "a<T>"]), 3), (stack(&["main", "b"]), 1)],
        );
        assert!(text.contains("<title>main 100.00 %</title>"));
        assert!(
            text.contains("<title>a&lt;T&gt; 75.00 %</title>")
                && text.contains("<title>b 25.00 %</title>")
        );
        assert_eq!(text.matches("<g>").count(), text.matches("</g>").count());
        assert!(svg("t", &[]).contains("0 samples"));
    }
}
