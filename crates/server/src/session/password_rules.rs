//! What the server holds of `validate_password`: the rules from its variables, and the words of its
//! dictionary.

use super::ServerState;
use super::vars::{self, VarValue};
use crate::password_policy::{Level, PasswordPolicy, Words};
use crate::unix_time::unix_time;

impl ServerState {
    /// The rules for new passwords; `None`: `validate_password` is not installed.
    pub fn password_policy(&self) -> Option<PasswordPolicy> {
        let policy = || PasswordPolicy {
            level: match &*self.text("validate_password.policy") {
                "LOW" => Level::Low,
                "STRONG" => Level::Strong,
                _ => Level::Medium,
            },
            length: self.int("validate_password.length"),
            mixed_case: self.int("validate_password.mixed_case_count"),
            digits: self.int("validate_password.number_count"),
            special: self.int("validate_password.special_char_count"),
            check_user_name: self.flag("validate_password.check_user_name"),
            changed_percentage: self.int("validate_password.changed_characters_percentage"),
        };
        self.components.validates_passwords().then(policy)
    }

    /// Raises `validate_password.length` so that the required characters have room.
    pub(crate) fn raise_password_length(&self) {
        let Some(policy) = self.password_policy() else {
            return;
        };
        let least = policy.least_length();
        if policy.length < least
            && let Ok(at) = vars::find("validate_password.length")
        {
            self.globals.set(at, VarValue::Int(least));
        }
    }

    /// Reads `validate_password.dictionary_file`; `None`: there is none, or it cannot be used.
    /// Blocks.
    pub(crate) fn read_password_words(&self) -> Option<Words> {
        let file = self.text("validate_password.dictionary_file");
        if file.is_empty() {
            return None;
        }
        let words = Words::read(&file, unix_time().as_secs());
        if words.is_none() {
            tracing::warn!("the dictionary of passwords '{file}' cannot be used");
        }
        words
    }

    /// Uses these words from now on; `None`: the present ones stay, as in MySQL.
    pub(crate) fn take_password_words(&self, words: Option<Words>) {
        if let Some(words) = words {
            self.password_words.store(words.into());
        }
    }
}
