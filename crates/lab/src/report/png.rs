//! Renders charts as PNG with a headless Chromium.

use std::path::Path;
use std::process::{Command, Stdio};

use super::page::{Drawing, STYLE};
use crate::LabError;

const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "chrome"];
const SIZE: (u32, u32) = (960, 510);

/// Writes `NAME.png` for each chart into `directory`.
pub fn write(charts: &[Drawing], directory: &Path) -> Result<(), LabError> {
    std::fs::create_dir_all(directory)
        .map_err(LabError::io(format!("cannot make {}", directory.display())))?;
    let found = BROWSERS.iter().find(|b| {
        Command::new(b)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    });
    let Some(browser) = found else {
        return Err(LabError::usage(
            "--png needs Chromium (Debian: apt-get install chromium); the page itself is written",
        ));
    };
    for chart in charts {
        let page = directory.join(format!("{}.html", chart.name));
        let image = directory.join(format!("{}.png", chart.name));
        let text = format!(
            "<!doctype html><meta charset=\"utf-8\"><style>{STYLE}\nbody{{margin:0;padding:0;max-width:none}}</style><body>{}</body>",
            chart.svg
        );
        std::fs::write(&page, text)
            .map_err(LabError::io(format!("cannot write {}", page.display())))?;
        let full = std::fs::canonicalize(&page).map_err(LabError::io("cannot find the chart"))?;
        let _ = std::fs::remove_file(&image);
        let done = Command::new(browser)
            .args([
                "--headless",
                "--disable-gpu",
                "--no-sandbox",
                "--hide-scrollbars",
            ])
            .arg(format!("--window-size={},{}", SIZE.0, SIZE.1))
            .arg(format!("--screenshot={}", image.display()))
            .arg(format!("file://{}", full.display()))
            .stdin(Stdio::null())
            .output()
            .map_err(LabError::io(format!("cannot run {browser}")))?;
        let _ = std::fs::remove_file(&page);
        if !image.exists() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(LabError::usage(format!(
                "{browser} drew nothing: {}",
                said.lines().last().unwrap_or_default()
            )));
        }
    }
    crate::output::say(&format!(
        "{}: {} pictures\n",
        directory.display(),
        charts.len()
    ))
}
