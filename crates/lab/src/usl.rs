//! The universal scalability law, fitted to throughput by number of clients or cores.
//!
//! ```text
//! X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))
//!        λ: throughput of one    σ: contention (serialized work)    κ: coherence (pairwise
//!        exchange)
//! ```
//! Source: N. Gunther, "Guerrilla Capacity Planning" (2007), chapters 4 and 5. With σ = κ = 0,
//! throughput grows without limit. With κ > 0 it has a peak at √((1-σ)/κ).
//!
//! # How it is fitted
//! In the form `N / X = a + b (N-1) + c N (N-1)`, where λ = 1/a, σ = b/a and κ = c/a, the law is
//! linear. That yields a start value. Gauss-Newton steps (Levenberg-Marquardt) then minimize the
//! squared errors of X, as R's package `usl` does; the tests compare with its published results. σ
//! and κ are at least 0: a term that would be negative is removed, and the others are fitted again.
//!
//! # Bands
//! The residuals of the fit are resampled (bootstrap), and each resampled curve is fitted. The band
//! reaches from the 2.5th to the 97.5th percentile. If there are no more points than parameters,
//! there are no residuals and no band.

use serde::{Deserialize, Serialize};

/// A point: N, and the throughput in any unit, above 0.
pub type Point = (f64, f64);

/// A fitted curve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Law {
    pub lambda: f64,
    /// Contention, at least 0.
    pub sigma: f64,
    /// Coherence, at least 0.
    pub kappa: f64,
}

/// A fitted curve with its uncertainty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    pub law: Law,
    /// The share of the variance of X that the curve explains (1: all).
    pub r_squared: f64,
    /// The 95 % intervals of λ, σ and κ. `None` if there are too few points.
    pub intervals: Option<[[f64; 2]; 3]>,
    /// (N, curve, its 95 % band if there is one), from 1 to the end of the forecast.
    pub curve: Vec<(f64, f64, Option<[f64; 2]>)>,
    /// The largest N that was measured. Beyond it, the curve is a forecast.
    pub measured_to: f64,
}

/// How far curves extend beyond the largest measured N, as a factor.
pub const FORECAST: f64 = 4.0;
const DRAWS: usize = 400;

impl Law {
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// The N with the highest throughput. `None` if there is no peak.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}

/// Fits the law. `None` with fewer than three different N, or with values that are not positive
/// numbers.
pub fn fit(points: &[Point]) -> Option<Fit> {
    let law = fit_law(points)?;
    let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|p| (p.1 - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|p| (p.1 - law.at(p.0)).powi(2)).sum();
    let r_squared = if total > 0.0 { 1.0 - left / total } else { 1.0 };
    let measured_to = points.iter().map(|p| p.0).fold(0.0, f64::max);
    let draws = bootstrap(points, &law);
    let mut curve = Vec::new();
    let steps = 80;
    for i in 0..=steps {
        let n = (measured_to * FORECAST).powf(f64::from(i) / f64::from(steps));
        let band = draws.as_ref().map(|draws| {
            let mut at: Vec<f64> = draws.iter().map(|d| d.at(n)).collect();
            quantiles(&mut at)
        });
        curve.push((n, law.at(n), band));
    }
    let intervals = draws.map(|draws| {
        let column =
            |get: fn(&Law) -> f64| quantiles(&mut draws.iter().map(get).collect::<Vec<f64>>());
        [
            column(|l| l.lambda),
            column(|l| l.sigma),
            column(|l| l.kappa),
        ]
    });
    Some(Fit {
        law,
        r_squared,
        intervals,
        curve,
        measured_to,
    })
}

fn fit_law(points: &[Point]) -> Option<Law> {
    let usable = points
        .iter()
        .all(|(n, x)| n.is_finite() && x.is_finite() && *n >= 1.0 && *x > 0.0);
    let mut different: Vec<f64> = points.iter().map(|p| p.0).collect();
    different.sort_by(f64::total_cmp);
    different.dedup();
    if !usable || different.len() < 3 {
        return None;
    }
    // The curve contains both σ and κ if both are positive, otherwise the better one of the smaller
    // models.
    let mut best: Option<(f64, Law)> = None;
    for terms in [[true, true], [true, false], [false, true], [false, false]] {
        let Some(start) = linear(points, terms) else {
            continue;
        };
        let law = refine(points, start, terms);
        if law.lambda <= 0.0 || law.sigma < 0.0 || law.kappa < 0.0 {
            continue;
        }
        let error = squares(points, &law);
        // A smaller model must be better to be chosen, so the full model wins if it is valid.
        if best.is_none_or(|(least, _)| error < least * 0.999_999) {
            best = Some((error, law));
        }
    }
    best.map(|(_, law)| law)
}

/// The sum of the squared errors.
fn squares(points: &[Point], law: &Law) -> f64 {
    points.iter().map(|(n, x)| (x - law.at(*n)).powi(2)).sum()
}

/// Least squares in the linear form. Each point is weighted so that its relative error counts.
fn linear(points: &[Point], terms: [bool; 2]) -> Option<Law> {
    let row = |n: f64| {
        [
            1.0,
            if terms[0] { n - 1.0 } else { 0.0 },
            if terms[1] { n * (n - 1.0) } else { 0.0 },
        ]
    };
    let (mut a, mut b) = ([[0.0; 3]; 3], [0.0; 3]);
    for (n, x) in points {
        let y = n / x;
        let (row, weight) = (row(*n), 1.0 / (y * y));
        for i in 0..3 {
            b[i] += weight * row[i] * y;
            for j in 0..3 {
                a[i][j] += weight * row[i] * row[j];
            }
        }
    }
    pin(&mut a, terms);
    let [p, q, r] = solve(a, b)?;
    (p > 0.0).then(|| Law {
        lambda: 1.0 / p,
        sigma: (q / p).max(0.0),
        kappa: (r / p).max(0.0),
    })
}

/// Fixes the parameters that are left out.
fn pin(a: &mut [[f64; 3]; 3], terms: [bool; 2]) {
    for (i, on) in terms.iter().enumerate() {
        if !on {
            a[i + 1] = [0.0; 3];
            a[i + 1][i + 1] = 1.0;
        }
    }
}

/// Refines a fit by Levenberg-Marquardt.
fn refine(points: &[Point], start: Law, terms: [bool; 2]) -> Law {
    let (mut law, mut damping) = (start, 1e-3);
    let mut error = squares(points, &law);
    for _ in 0..200 {
        let (mut a, mut b) = ([[0.0; 3]; 3], [0.0; 3]);
        for (n, x) in points {
            let bottom = 1.0 + law.sigma * (n - 1.0) + law.kappa * n * (n - 1.0);
            let value = law.lambda * n / bottom;
            let slope = [
                value / law.lambda,
                if terms[0] {
                    -value * (n - 1.0) / bottom
                } else {
                    0.0
                },
                if terms[1] {
                    -value * n * (n - 1.0) / bottom
                } else {
                    0.0
                },
            ];
            let residual = x - value;
            for i in 0..3 {
                b[i] += slope[i] * residual;
                for j in 0..3 {
                    a[i][j] += slope[i] * slope[j];
                }
            }
        }
        for (i, row) in a.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        pin(&mut a, terms);
        let Some(step) = solve(a, b) else { break };
        let tried = Law {
            lambda: law.lambda + step[0],
            sigma: law.sigma + step[1],
            kappa: law.kappa + step[2],
        };
        let reached = squares(points, &tried);
        if reached < error && tried.lambda > 0.0 {
            let small = error - reached <= error * 1e-14;
            (law, error, damping) = (tried, reached, damping / 3.0);
            if small {
                break;
            }
        } else {
            damping *= 4.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    law
}

/// Gaussian elimination with pivoting. `None` if the matrix is singular.
fn solve(mut a: [[f64; 3]; 3], mut b: [f64; 3]) -> Option<[f64; 3]> {
    // Columns differ by many orders of magnitude, so they are scaled first.
    let scale: [f64; 3] =
        std::array::from_fn(|j| (0..3).map(|i| a[i][j].abs()).fold(0.0, f64::max));
    if scale.contains(&0.0) {
        return None;
    }
    for row in &mut a {
        for (v, s) in row.iter_mut().zip(scale) {
            *v /= s;
        }
    }
    for i in 0..3 {
        let pivot = (i..3).max_by(|x, y| a[*x][i].abs().total_cmp(&a[*y][i].abs()))?;
        a.swap(i, pivot);
        b.swap(i, pivot);
        let size = a[i].iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if a[i][i].abs() < size * 1e-14 || size == 0.0 {
            return None;
        }
        for k in i + 1..3 {
            let f = a[k][i] / a[i][i];
            let above = a[i];
            for (v, u) in a[k].iter_mut().zip(above).skip(i) {
                *v -= f * u;
            }
            b[k] -= f * b[i];
        }
    }
    let mut x = [0.0; 3];
    for i in (0..3).rev() {
        let rest: f64 = (i + 1..3).map(|j| a[i][j] * x[j]).sum();
        x[i] = (b[i] - rest) / a[i][i];
    }
    Some(std::array::from_fn(|i| x[i] / scale[i]))
}

/// Fits curves to this curve's own values with resampled residuals. `None` without residuals.
fn bootstrap(points: &[Point], law: &Law) -> Option<Vec<Law>> {
    let free = points.len().checked_sub(3).filter(|f| *f > 0)?;
    // A curve with three parameters absorbs the error of three points.
    let inflate = (points.len() as f64 / free as f64).sqrt();
    let residuals: Vec<f64> = points
        .iter()
        .map(|(n, x)| (x - law.at(*n)) * inflate)
        .collect();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut draws = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let drawn: Vec<Point> = points
            .iter()
            .map(|(n, _)| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let pick = ((state >> 33) as usize) % residuals.len();
                (*n, (law.at(*n) + residuals[pick]).max(law.at(*n) * 0.01))
            })
            .collect();
        draws.extend(fit_law(&drawn));
    }
    (draws.len() > DRAWS / 2).then_some(draws)
}

/// The 2.5th and the 97.5th percentile.
fn quantiles(values: &mut [f64]) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    [at(0.025), at(0.975)]
}

#[cfg(test)]
#[path = "usl_tests.rs"]
mod tests;
