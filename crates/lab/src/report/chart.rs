//! Line and bar charts as SVG, without a library: axes with round steps, bands, and markers that
//! differ in black and white.
//!
//! Colours are CSS variables of the page (`style.css`), so charts follow the dark mode. A
//! stand-alone chart contains the same definitions.

use crate::output::escape;
use std::fmt::Write;

/// One line of a chart.
#[derive(Debug, Clone, Default)]
pub struct Series {
    pub name: String,
    /// The index of the page's colour, from 0.
    pub color: usize,
    pub points: Vec<(f64, f64)>,
    /// (x, lowest, highest) values, drawn as an area behind the line.
    pub band: Vec<(f64, f64, f64)>,
    pub dashed: bool,
    pub markers: bool,
}

/// A line chart.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// Draw powers of two at equal distances, for client counts.
    pub log_x: bool,
    pub log_y: bool,
    /// Values beyond this x are a forecast, which is marked by a line and a label.
    pub forecast_from: Option<f64>,
    pub series: Vec<Series>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 64.0;
/// The number of colours defined in the style.
pub const COLORS: usize = 8;

/// Shortens `12_345.6` to `12.3k`.
pub fn short(v: f64) -> String {
    let (scaled, unit) = match v.abs() {
        a if a >= 1e9 => (v / 1e9, "G"),
        a if a >= 1e6 => (v / 1e6, "M"),
        a if a >= 1e3 => (v / 1e3, "k"),
        _ => (v, ""),
    };
    let digits = match scaled.abs() {
        a if a >= 100.0 || a.fract() == 0.0 => 0,
        a if a >= 10.0 => 1,
        a if a >= 0.1 => 2,
        _ => 4,
    };
    let mut text = format!("{scaled:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text + unit
}

/// About five steps of 1, 2 or 5 times a power of ten, from 0 to at least `high`.
fn ticks(high: f64) -> Vec<f64> {
    let rough = high / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= rough * 0.999)
        .unwrap_or(power * 10.0);
    let count = (high / step).ceil() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

/// Powers of ten around `low..high`, with 2 and 5 in between if there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let between: &[f64] = if last - first <= 3 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let all: Vec<f64> = (first..=last)
        .flat_map(|p| between.iter().map(move |m| m * 10f64.powi(p)))
        .collect();
    let from = all.iter().rposition(|t| *t <= low).unwrap_or(0);
    let to = all.iter().position(|t| *t >= high).unwrap_or(all.len() - 1);
    all[from..=to.max(from)].to_vec()
}

struct Scale {
    x: (f64, f64),
    y: (f64, f64),
    log_x: bool,
    log_y: bool,
}

impl Scale {
    fn x(&self, v: f64) -> f64 {
        LEFT + share(v, self.x, self.log_x) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, v: f64) -> f64 {
        HEIGHT - BOTTOM - share(v, self.y, self.log_y) * (HEIGHT - TOP - BOTTOM)
    }
}

fn share(v: f64, (low, high): (f64, f64), log: bool) -> f64 {
    let f = |v: f64| if log { v.max(1e-12).ln() } else { v };
    if high <= low {
        return 0.5;
    }
    ((f(v) - f(low)) / (f(high) - f(low))).clamp(0.0, 1.0)
}

impl Chart {
    /// The SVG element. `None` if there is nothing to draw.
    pub fn svg(&self) -> Option<String> {
        let all = || self.series.iter().flat_map(|s| s.points.iter().copied());
        let finite = all()
            .filter(|(x, y)| x.is_finite() && y.is_finite() && (!self.log_y || *y > 0.0))
            .count();
        if finite == 0 {
            return None;
        }
        let fold = |get: &dyn Fn(&(f64, f64)) -> f64, best: fn(f64, f64) -> f64| {
            all()
                .map(|p| get(&p))
                .filter(|v| v.is_finite())
                .reduce(best)
        };
        let (x_low, x_high) = (fold(&|p| p.0, f64::min)?, fold(&|p| p.0, f64::max)?);
        let bands = self
            .series
            .iter()
            .flat_map(|s| s.band.iter().map(|b| b.2))
            .fold(0.0, f64::max);
        let y_high = fold(&|p| p.1, f64::max)?.max(bands).max(1e-9);
        let y_low = all()
            .map(|p| p.1)
            .filter(|y| *y > 0.0)
            .fold(f64::INFINITY, f64::min)
            .min(y_high);
        let y_ticks = if self.log_y {
            log_ticks(y_low, y_high)
        } else {
            ticks(y_high)
        };
        let y = (y_ticks[0], y_ticks[y_ticks.len() - 1]);
        let x = if self.log_x {
            (x_low, x_high)
        } else {
            (0.0, x_high)
        };
        let scale = Scale {
            x,
            y,
            log_x: self.log_x,
            log_y: self.log_y,
        };
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
            escape(&self.title)
        );
        let _ = write!(
            out,
            "<text class=\"title\" x=\"{LEFT}\" y=\"20\">{}</text>",
            escape(&self.title)
        );
        self.axes(&mut out, &scale, &y_ticks);
        for series in &self.series {
            line(&mut out, &scale, series, self.log_y);
        }
        self.legend(&mut out);
        out.push_str("</svg>");
        Some(out)
    }

    fn axes(&self, out: &mut String, scale: &Scale, y_ticks: &[f64]) {
        for tick in y_ticks {
            let y = scale.y(*tick);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0,
                short(*tick)
            );
        }
        let mut last = f64::NEG_INFINITY;
        for tick in self.x_ticks(scale) {
            let x = scale.x(tick);
            if x - last < 24.0 {
                continue;
            }
            last = x;
            let base = HEIGHT - BOTTOM;
            let _ = write!(
                out,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{base}\" y2=\"{}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                base + 4.0,
                base + 17.0,
                short(tick)
            );
        }
        let base = HEIGHT - BOTTOM;
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{base}\" y2=\"{base}\"/>",
            WIDTH - RIGHT
        );
        let _ = write!(
            out,
            "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            (LEFT + WIDTH - RIGHT) / 2.0,
            base + 33.0,
            escape(&self.x_label)
        );
        let middle = (TOP + base) / 2.0;
        let _ = write!(
            out,
            "<text class=\"label\" transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.y_label)
        );
        if let Some(from) = self.forecast_from {
            let x = scale.x(from);
            let _ = write!(
                out,
                "<line class=\"forecast\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{base}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{}\">forecast</text>",
                x + 5.0,
                TOP + 10.0
            );
        }
    }

    /// The x of the points if the axis is in powers of two; otherwise round steps.
    fn x_ticks(&self, scale: &Scale) -> Vec<f64> {
        if !self.log_x {
            return ticks(scale.x.1)
                .into_iter()
                .filter(|t| *t <= scale.x.1)
                .collect();
        }
        let mut at: Vec<f64> = self
            .series
            .iter()
            .filter(|s| s.markers)
            .flat_map(|s| s.points.iter().map(|p| p.0))
            .collect();
        if at.is_empty() {
            at = (0..20)
                .map(|p| 2f64.powi(p))
                .filter(|t| *t >= scale.x.0 && *t <= scale.x.1)
                .collect();
        }
        at.sort_by(f64::total_cmp);
        at.dedup();
        at
    }

    fn legend(&self, out: &mut String) {
        let mut x = LEFT;
        for series in self.series.iter().filter(|s| !s.name.is_empty()) {
            let y = HEIGHT - 10.0;
            let _ = write!(
                out,
                "<line class=\"c{}{}\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                series.color % COLORS,
                if series.dashed { " dashed" } else { "" },
                x + 22.0,
                y - 4.0,
                y - 4.0
            );
            if series.markers {
                marker(out, series.color, x + 11.0, y - 4.0);
            }
            let _ = write!(
                out,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{y}\">{}</text>",
                x + 27.0,
                escape(&series.name)
            );
            x += 44.0 + series.name.chars().count() as f64 * 6.6;
        }
    }
}

fn line(out: &mut String, scale: &Scale, series: &Series, log_y: bool) {
    let color = series.color % COLORS;
    let ok = |y: f64| y.is_finite() && (!log_y || y > 0.0);
    if series.band.len() > 1 {
        out.push_str(&format!("<polygon class=\"b{color}\" points=\""));
        for (x, _, high) in &series.band {
            let _ = write!(out, "{:.1},{:.1} ", scale.x(*x), scale.y(*high));
        }
        for (x, low, _) in series.band.iter().rev() {
            let _ = write!(out, "{:.1},{:.1} ", scale.x(*x), scale.y(*low));
        }
        out.push_str("\"/>");
    }
    let dashed = if series.dashed { " dashed" } else { "" };
    let _ = write!(out, "<polyline class=\"c{color}{dashed}\" points=\"");
    for (x, y) in series.points.iter().filter(|p| ok(p.1)) {
        let _ = write!(out, "{:.1},{:.1} ", scale.x(*x), scale.y(*y));
    }
    out.push_str("\"/>");
    if series.markers {
        for (x, y) in series.points.iter().filter(|p| ok(p.1)) {
            marker(out, series.color, scale.x(*x), scale.y(*y));
        }
    }
}

/// A marker with a different shape for each colour.
fn marker(out: &mut String, color: usize, x: f64, y: f64) {
    let class = format!("m{}", color % COLORS);
    let _ = match color % 4 {
        0 => write!(
            out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"
        ),
        1 => write!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\"/>",
            x - 3.5,
            y - 3.5
        ),
        2 => write!(
            out,
            "<path class=\"{class}\" d=\"M{x:.1} {:.1}l4.4 7.6h-8.8z\"/>",
            y - 4.6
        ),
        _ => write!(
            out,
            "<path class=\"{class}\" d=\"M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4z\"/>",
            y - 4.4
        ),
    };
}

/// A bar chart of shares, one bar per (name, share from 0 to 1), in one colour.
pub fn bars(title: &str, rows: &[(String, f64)], color: usize) -> String {
    let height = 34.0 + rows.len() as f64 * 22.0;
    let most = rows.iter().map(|r| r.1).fold(0.0, f64::max).max(1e-9);
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\">"
    );
    let _ = write!(
        out,
        "<text class=\"title\" x=\"8\" y=\"20\">{}</text>",
        escape(title)
    );
    for (i, (name, share)) in rows.iter().enumerate() {
        let y = 34.0 + i as f64 * 22.0;
        let cut: String = name.chars().take(40).collect();
        let width = share / most * 280.0;
        let _ = write!(
            out,
            "<text class=\"tick\" x=\"290\" y=\"{:.1}\" text-anchor=\"end\">{}</text><rect class=\"f{}\" x=\"298\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"15\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{:.1} %</text>",
            y + 12.0,
            escape(&cut),
            color % COLORS,
            304.0 + width,
            y + 12.0,
            share * 100.0
        );
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened() {
        for (v, text) in [
            (0.0, "0"),
            (950.0, "950"),
            (1500.0, "1.5k"),
            (12_345.0, "12.3k"),
            (2e6, "2M"),
            (0.25, "0.25"),
            (333.3, "333"),
        ] {
            assert_eq!(short(v), text);
        }
    }

    #[test]
    fn axes_start_at_zero_and_include_the_maximum() {
        for high in [0.003, 1.0, 7.3, 99.0, 12_345.0, 8e9] {
            let t = ticks(high);
            assert_eq!(t[0], 0.0);
            assert!(t[t.len() - 1] >= high && t.len() <= 8, "{high}: {t:?}");
        }
        let t = log_ticks(30.0, 2500.0);
        assert!(t[0] <= 30.0 && t[t.len() - 1] >= 2500.0, "{t:?}");
    }

    #[test]
    fn chart_contains_its_points_and_escapes_names() {
        let series = |name: &str| Series {
            name: name.into(),
            points: vec![(1.0, 10.0), (64.0, 500.0)],
            markers: true,
            ..Series::default()
        };
        let chart = Chart {
            title: "a < b".into(),
            log_x: true,
            series: vec![series("<script>"), series("two")],
            ..Chart::default()
        };
        let svg = chart.svg().expect("points");
        assert!(
            svg.contains("a &lt; b") && svg.contains("&lt;script&gt;") && !svg.contains("<script>")
        );
        assert_eq!(
            svg.matches("<circle").count(),
            2 * 3,
            "two points and the legend, of both"
        );
        assert_eq!(Chart::default().svg(), None);
        let nothing = Series {
            points: vec![(1.0, f64::NAN)],
            ..Series::default()
        };
        assert_eq!(
            Chart {
                series: vec![nothing],
                ..Chart::default()
            }
            .svg(),
            None
        );
    }
}
