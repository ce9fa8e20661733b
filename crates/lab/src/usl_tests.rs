//! Curves with known parameters, exact and noisy, and published tables with their published fits.

use super::*;
use proptest::prelude::*;

fn curve(law: &Law, counts: &[f64]) -> Vec<Point> {
    counts.iter().map(|n| (*n, law.at(*n))).collect()
}

const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0];

proptest! {
    /// Fitting a curve of the law returns its parameters.
    #[test]
    fn known_parameters_are_recovered(lambda in 1.0f64..1e6, sigma in 0.0f64..0.5, kappa in 0.0f64..0.01) {
        let law = Law { lambda, sigma, kappa };
        let found = fit(&curve(&law, COUNTS)).expect("a curve");
        prop_assert!((found.law.lambda / lambda - 1.0).abs() < 1e-6, "{:?}", found.law);
        prop_assert!((found.law.sigma - sigma).abs() < 1e-6, "{:?}", found.law);
        prop_assert!((found.law.kappa - kappa).abs() < 1e-7, "{:?}", found.law);
        prop_assert!(found.r_squared > 0.999_999 || sigma > 0.45);
    }

    /// For all measurements σ and κ are not negative, and the curve is finite and positive over its
    /// whole range.
    #[test]
    fn positive_tables_yield_finite_curves(values in prop::collection::vec(0.1f64..1e6, 3..10)) {
        let points: Vec<Point> = values.iter().enumerate().map(|(i, x)| (2f64.powi(i as i32), *x)).collect();
        let found = fit(&points).expect("a curve");
        prop_assert!(found.law.sigma >= 0.0 && found.law.kappa >= 0.0 && found.law.lambda > 0.0);
        prop_assert!(found.curve.iter().all(|(_, x, _)| x.is_finite() && *x > 0.0));
        let end = found.curve.last().expect("not empty").0;
        prop_assert!((end - found.measured_to * FORECAST).abs() < 1e-6 * end);
    }
}

/// Of many curves with 3 % noise, the 95 % band at the largest N nearly always contains the true
/// value.
#[test]
fn bands_contain_the_true_value() {
    let law = Law {
        lambda: 1000.0,
        sigma: 0.05,
        kappa: 0.001,
    };
    let mut state = 1u64;
    let mut noise = || {
        // The sum of twelve uniform draws is close to normal with variance 1.
        let sum: f64 = (0..12)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            })
            .sum();
        sum - 6.0
    };
    let (mut held, rounds) = (0, 60);
    for _ in 0..rounds {
        let points: Vec<Point> = curve(&law, COUNTS)
            .into_iter()
            .chain(curve(&law, COUNTS))
            .map(|(n, x)| (n, x * (1.0 + 0.03 * noise())))
            .collect();
        let found = fit(&points).expect("a curve");
        let intervals = found.intervals.expect("points enough");
        let near = |v: f64, [low, high]: [f64; 2]| v >= low && v <= high;
        held += u32::from(near(law.sigma, intervals[1]));
        let (n, _, band) = found
            .curve
            .iter()
            .min_by(|a, b| (a.0 - 32.0).abs().total_cmp(&(b.0 - 32.0).abs()))
            .expect("not empty");
        let [low, high] = band.expect("points enough");
        assert!(low <= high && low > law.at(*n) * 0.8 && high < law.at(*n) * 1.2);
    }
    assert!(held >= rounds * 8 / 10, "{held} of {rounds}");
}

/// SPEC SDM91 on a SPARCcenter 2000: the example of the R package `usl`, whose documentation
/// contains the fit and its peak.
#[test]
fn fit_matches_published_spec_sdm91() {
    let table = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];
    let law = fit(&table).expect("a curve").law;
    assert!((law.sigma - 0.0277285).abs() < 2e-6, "{law:?}");
    assert!((law.kappa - 0.0001044).abs() < 1e-7, "{law:?}");
    assert!((law.lambda - 89.9952).abs() < 1e-3, "{law:?}");
    let peak = law.peak().expect("it has one");
    assert!((peak - 96.52).abs() < 0.02, "{peak}");
    assert!((law.at(peak) - 1884.0).abs() < 1.0);
}

/// Gunther, "Guerrilla Capacity Planning", chapter 5: a ray tracer on up to 64 processors. The
/// book's σ is 0.05, its κ below 1e-4.
#[test]
fn fit_matches_published_ray_tracer() {
    let table = [
        (1.0, 20.0),
        (4.0, 78.0),
        (8.0, 130.0),
        (12.0, 170.0),
        (16.0, 190.0),
        (20.0, 200.0),
        (24.0, 210.0),
        (28.0, 230.0),
        (32.0, 260.0),
        (48.0, 280.0),
        (64.0, 310.0),
    ];
    let found = fit(&table).expect("a curve");
    assert!((found.law.sigma - 0.05).abs() < 0.012, "{:?}", found.law);
    assert!(found.law.kappa < 1e-4, "{:?}", found.law);
    assert!((found.law.lambda - 20.0).abs() < 3.0, "{:?}", found.law);
    assert!(found.r_squared > 0.97, "{}", found.r_squared);
}

/// Tables that are too small or contain invalid values.
#[test]
fn too_few_or_invalid_points_yield_no_curve() {
    assert_eq!(fit(&[]), None);
    assert_eq!(fit(&[(1.0, 1.0), (2.0, 2.0)]), None);
    assert_eq!(fit(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (2.0, 2.2)]), None);
    assert_eq!(fit(&[(1.0, 1.0), (2.0, 0.0), (4.0, 1.0)]), None);
    assert_eq!(fit(&[(1.0, 1.0), (2.0, f64::NAN), (4.0, 1.0)]), None);
    let three = fit(&[(1.0, 1.0), (2.0, 1.8), (4.0, 3.0)]).expect("a curve");
    assert_eq!(three.intervals, None, "no residuals, no band");
}

/// A straight line needs neither term. A saturated curve has no coherence and no peak.
#[test]
fn linear_and_saturated_curves_are_recognized() {
    let line = fit(&[(1.0, 10.0), (2.0, 20.0), (4.0, 40.0), (8.0, 80.0)])
        .expect("a curve")
        .law;
    assert!(line.sigma < 1e-9 && line.kappa < 1e-9, "{line:?}");
    let peak = Law {
        lambda: 1.0,
        sigma: 0.0,
        kappa: 0.01,
    };
    assert_eq!(peak.peak(), Some(10.0));
}
