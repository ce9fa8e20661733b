//! MariaDB's collation names, which clients and dumps for it use, and the closest MySQL collations.
//!
//! ```text
//! utf8mb4_nopad_bin                      utf8mb4_0900_bin
//! utf8mb4_unicode[_520]_nopad_ci         utf8mb4_0900_ai_ci
//! [utf8mb4_]uca1400_SUFFIX               utf8mb4_0900_SUFFIX; as_cs for ai_cs
//! [utf8mb4_]uca1400_LANGUAGE_SUFFIX      utf8mb4_LANGUAGE_0900_SUFFIX; as_cs for ai_cs and as_ci
//! utf8mb3_uca1400_[LANGUAGE_]SUFFIX      utf8mb3_LANGUAGE_ci, utf8mb3_unicode_520_ci without one
//! other names with nopad_                the name without it
//! ```

/// MariaDB's names of languages, and MySQL's.
const LANGUAGES: [(&str, &str); 20] = [
    ("croatian", "hr"),
    ("czech", "cs"),
    ("danish", "da"),
    ("esperanto", "eo"),
    ("estonian", "et"),
    ("german2", "de_pb"),
    ("hungarian", "hu"),
    ("icelandic", "is"),
    ("latvian", "lv"),
    ("lithuanian", "lt"),
    ("polish", "pl"),
    ("roman", "la"),
    ("romanian", "ro"),
    ("slovak", "sk"),
    ("slovenian", "sl"),
    ("spanish", "es"),
    ("spanish2", "es_trad"),
    ("swedish", "sv"),
    ("turkish", "tr"),
    ("vietnamese", "vi"),
];

/// MySQL's name for a collation that only MariaDB has, in lower case.
pub(super) fn nearest(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    if let Some(at) = name.find("uca1400_") {
        let rest = name[at + "uca1400_".len()..].replace("nopad_", "");
        return match &name[..at] {
            "" | "utf8mb4_" => uca1400(&rest),
            "utf8mb3_" | "utf8_" => {
                let (language, _) = language_and_suffix(&rest)?;
                Some(match language {
                    "" => "utf8mb3_unicode_520_ci".into(),
                    _ => format!("utf8mb3_{language}_ci"),
                })
            }
            _ => None,
        };
    }
    match name.as_str() {
        "utf8mb4_nopad_bin" => Some("utf8mb4_0900_bin".into()),
        "utf8mb4_unicode_nopad_ci" | "utf8mb4_unicode_520_nopad_ci" => {
            Some("utf8mb4_0900_ai_ci".into())
        }
        _ => name.contains("_nopad_").then(|| name.replace("nopad_", "")),
    }
}

/// Splits what follows `uca1400_` in two.
fn language_and_suffix(rest: &str) -> Option<(&str, &str)> {
    let at = rest.len().checked_sub("ai_ci".len())?;
    let (language, suffix) = rest.split_at_checked(at)?;
    matches!(suffix, "ai_ci" | "ai_cs" | "as_ci" | "as_cs")
        .then(|| (language.trim_end_matches('_'), suffix))
}

/// The name of utf8mb4 for what follows `uca1400_`.
fn uca1400(rest: &str) -> Option<String> {
    let (language, suffix) = language_and_suffix(rest)?;
    let found = LANGUAGES.iter().find(|(theirs, _)| *theirs == language);
    Some(match (language, found, suffix) {
        ("", _, "ai_cs") => "utf8mb4_0900_as_cs".into(),
        ("", ..) => format!("utf8mb4_0900_{suffix}"),
        (_, Some((_, ours)), "ai_ci") => format!("utf8mb4_{ours}_0900_ai_ci"),
        (_, Some((_, ours)), _) => format!("utf8mb4_{ours}_0900_as_cs"),
        (_, None, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Collation;

    #[test]
    fn mariadb_names_map_to_the_nearest_collation() {
        let names = [
            ("utf8mb4_unicode_520_nopad_ci", Some("utf8mb4_0900_ai_ci")),
            ("UTF8MB4_UCA1400_AI_CI", Some("utf8mb4_0900_ai_ci")),
            ("uca1400_as_ci", Some("utf8mb4_0900_as_ci")),
            (
                "utf8mb3_uca1400_nopad_ai_cs",
                Some("utf8mb3_unicode_520_ci"),
            ),
            ("utf8_uca1400_swedish_ai_ci", Some("utf8mb3_swedish_ci")),
            (
                "utf8mb4_uca1400_swedish_ai_ci",
                Some("utf8mb4_sv_0900_ai_ci"),
            ),
            (
                "utf8mb4_uca1400_spanish2_nopad_as_ci",
                Some("utf8mb4_es_trad_0900_as_cs"),
            ),
            ("utf8mb4_nopad_bin", Some("utf8mb4_0900_bin")),
            ("latin1_swedish_nopad_ci", Some("latin1_swedish_ci")),
            ("koi8r_nopad_bin", Some("koi8r_bin")),
            ("latin1_uca1400_ai_ci", None),
            ("utf8mb4_uca1400_klingon_ai_ci", None),
            ("nowhere_nopad_ci", None),
        ];
        for (theirs, ours) in names {
            assert_eq!(Collation::by_name(theirs).map(|c| c.name), ours, "{theirs}");
        }
    }
}
