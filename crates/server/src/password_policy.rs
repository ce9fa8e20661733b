//! The rules of `validate_password` about new passwords.
//!
//! Source: MySQL manual, "Password Validation Options and Variables". Which characters count as
//! letters, digits and others was found out with a MySQL server.

use rustc_hash::FxHashSet;

/// The length in bytes of the shortest word of a dictionary that counts.
const SHORTEST_WORD: usize = 4;

/// As much of a password, in bytes, as is compared with a dictionary.
const COMPARED_BYTES: usize = 100;

/// The maximum size of a dictionary file in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// How strict the rules are (`validate_password.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The length.
    Low,
    /// And the kinds of characters.
    Medium,
    /// And no word of the dictionary.
    Strong,
}

/// The rules, from the global variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordPolicy {
    pub level: Level,
    /// The minimum length in characters.
    pub length: u64,
    /// The minimum number of lower case letters, and of upper case letters.
    pub mixed_case: u64,
    pub digits: u64,
    pub special: u64,
    /// Whether a password must differ from the user's name.
    pub check_user_name: bool,
    /// The part of the characters that a new password must not share with the old one.
    pub changed_percentage: u64,
}

/// The words of a dictionary file.
#[derive(Debug, Default)]
pub struct Words {
    words: FxHashSet<Box<[u8]>>,
    /// When the file was read, or the component was installed, in seconds since 1970.
    pub read_s: u64,
}

impl Words {
    /// The words of a file, one a line. `None`: it cannot be read, is empty, or is too large.
    /// Blocks.
    pub fn read(path: &str, now_s: u64) -> Option<Words> {
        let size = std::fs::metadata(path).ok()?.len();
        if !(1..=LARGEST_FILE).contains(&size) {
            return None;
        }
        let text = std::fs::read(path).ok()?;
        let lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        Some(Words {
            words: lines.map(Box::from).collect(),
            read_s: now_s,
        })
    }

    /// No words, as of this time.
    pub fn of_now(now_s: u64) -> Words {
        Words {
            read_s: now_s,
            ..Words::default()
        }
    }

    /// The number of different words.
    pub fn count(&self) -> usize {
        self.words.len()
    }

    /// Whether a part of the password is a word.
    fn occur_in(&self, password: &str) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let lower = password.to_lowercase();
        let bytes = &lower.as_bytes()[..lower.len().min(COMPARED_BYTES)];
        (SHORTEST_WORD..=bytes.len())
            .flat_map(|n| bytes.windows(n))
            .any(|part| self.words.contains(part))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Special,
}

/// The kind of a character. Letters without case count as lower case.
fn class(c: char) -> Class {
    match c {
        '\u{10000}'.. => Class::Special,
        // Combining diacritical marks.
        '\u{300}'..='\u{36f}' => Class::Lower,
        _ if c.is_numeric() && !c.is_alphabetic() => Class::Digit,
        _ if !c.is_alphabetic() => Class::Special,
        // Letters such as `ǅ` have another lower case and are no upper case themselves.
        _ if !c.is_numeric() && !c.to_lowercase().eq([c]) => Class::Upper,
        _ => Class::Lower,
    }
}

impl PasswordPolicy {
    /// Whether the rules allow a password. `users`: the user's names.
    pub fn accepts(&self, password: &str, users: &[&str], words: &Words) -> bool {
        self.fits(password, self.level, users, words)
    }

    /// What VALIDATE_PASSWORD_STRENGTH returns: 0 to 100.
    pub fn strength(&self, password: &str, users: &[&str], words: &Words) -> u64 {
        let chars = password.chars().count();
        let fits = |level| self.fits(password, level, users, words);
        match chars {
            _ if self.is_name(password, users) => 0,
            0..SHORTEST_WORD => 0,
            n if (n as u64) < self.length => 25,
            _ if !fits(Level::Medium) => 50,
            _ if !fits(Level::Strong) => 75,
            _ => 100,
        }
    }

    fn fits(&self, password: &str, level: Level, users: &[&str], words: &Words) -> bool {
        let mut found = [0; 4];
        for c in password.chars() {
            found[class(c) as usize] += 1;
        }
        let [lower, upper, digits, special]: [u64; 4] = found;
        found.iter().sum::<u64>() >= self.length
            && !self.is_name(password, users)
            && (level < Level::Medium
                || lower >= self.mixed_case
                    && upper >= self.mixed_case
                    && digits >= self.digits
                    && special >= self.special)
            && (level < Level::Strong || !words.occur_in(password))
    }

    /// Whether a password is a user's name, forwards or backwards.
    fn is_name(&self, password: &str, users: &[&str]) -> bool {
        let is = |user: &&str| {
            !user.is_empty() && (password == *user || password.bytes().eq(user.bytes().rev()))
        };
        self.check_user_name && users.iter().any(is)
    }

    /// The least `length` in which the required characters have room.
    pub fn least_length(&self) -> u64 {
        self.digits + 2 * self.mixed_case + self.special
    }

    /// How many characters of a new password must not be in the old one, and how many are not;
    /// `None`: there are enough. Upper and lower case letters are the same.
    pub fn too_few_changed(&self, old: &str, new: &str) -> Option<(u64, u64)> {
        let of = |text: &str| -> FxHashSet<char> { text.to_lowercase().chars().collect() };
        let longest = self.length.max(old.chars().count() as u64);
        let required = longest.saturating_mul(self.changed_percentage) / 100;
        let changed = of(new).difference(&of(old)).count() as u64;
        (changed < required).then_some((required, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(level: Level) -> PasswordPolicy {
        PasswordPolicy {
            level,
            length: 8,
            mixed_case: 1,
            digits: 1,
            special: 1,
            check_user_name: true,
            changed_percentage: 50,
        }
    }

    #[test]
    fn characters_have_mysqls_classes() {
        let of = |class_of: Class, text: &str| {
            for c in text.chars() {
                assert_eq!(class(c), class_of, "{c}");
            }
        };
        of(Class::Lower, "aäßª日ا\u{301}Ⅷⅷ");
        of(Class::Upper, "AÄǅ");
        of(Class::Digit, "1½①٣²¼");
        of(Class::Special, " !_€\t😀𝐀𝟏");
    }

    #[test]
    fn passwords_are_rated() {
        let p = policy(Level::Medium);
        let words = Words {
            words: ["word", "Upper"]
                .map(|w| w.as_bytes().into())
                .into_iter()
                .collect(),
            read_s: 1,
        };
        let rated = |password| p.strength(password, &["bob12345", "x"], &words);
        let list = [
            "abc",
            "abcd",
            "abcdefgh",
            "abcDEF1!",
            "aB1!WORD",
            "aB1!UPPER",
            "bob12345",
            "54321bob",
        ];
        assert_eq!(list.map(rated), [0, 25, 50, 100, 75, 100, 0, 0]);
        assert!(!policy(Level::Strong).accepts("aB1!WORD", &[], &words));
        assert!(p.accepts("aB1!WORD", &[], &words));
        assert!(!p.accepts("abcdefgh", &[], &words));
        assert!(policy(Level::Low).accepts("abcdefgh", &[], &words));
    }

    #[test]
    fn changed_characters_are_counted() {
        let p = policy(Level::Low);
        assert_eq!(p.too_few_changed("abcdefgh", "ABCDxxxx"), Some((4, 1)));
        assert_eq!(p.too_few_changed("abcdefgh", "wxyz"), None);
        assert_eq!(p.too_few_changed("abcdefghabcdefgh", "wxyz"), Some((8, 4)));
    }
}
