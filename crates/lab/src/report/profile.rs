//! A profile by phase in the report: what `stacks --json` wrote.

use std::path::Path;

use crate::LabError;
use crate::stacks::Profile as Stacks;

/// A server's profile.
pub struct Profile {
    pub server: String,
    pub stacks: Stacks,
}

impl Profile {
    pub fn read(server: &str, path: &Path) -> Result<Profile, LabError> {
        let text = std::fs::read_to_string(path)
            .map_err(LabError::io(format!("cannot read {}", path.display())))?;
        let stacks: Stacks = serde_json::from_str(&text).map_err(|e| {
            LabError::malformed(format!(
                "{} is no file of `stacks --json`: {e}",
                path.display()
            ))
        })?;
        Ok(Profile {
            server: server.to_owned(),
            stacks,
        })
    }
}
