//! The collations of a source by their numbers.

use nfold_types::{Collation, CollationId};

/// The collation of the id that a replication source sent. An id that only MariaDB has is that of
/// the nearest collation of MySQL.
pub fn collation_of_source(id: u16) -> Option<CollationId> {
    let own = CollationId(id).get().map(|c| c.id);
    own.or_else(|| nearest_id(id))
}

/// The languages of `uca1400` by their numbers in MariaDB; empty: none, or no collation of MySQL.
const TAILORINGS: [&str; 25] = [
    "",
    "icelandic",
    "latvian",
    "romanian",
    "slovenian",
    "polish",
    "estonian",
    "spanish",
    "swedish",
    "turkish",
    "czech",
    "danish",
    "lithuanian",
    "slovak",
    "spanish2",
    "roman",
    "persian",
    "esperanto",
    "hungarian",
    "sinhala",
    "german2",
    "",
    "",
    "vietnamese",
    "croatian",
];

/// MySQL's collation for the id of one that only MariaDB has.
///
/// ```text
/// 1024 + n    the collation n without padding
/// 2048 + ...  uca1400: 256 * character set + 8 * language + 4 if without padding + suffix
/// ```
fn nearest_id(id: u16) -> Option<CollationId> {
    const CHARSETS: [&str; 2] = ["utf8mb3", "utf8mb4"];
    const SUFFIXES: [&str; 4] = ["ai_ci", "ai_cs", "as_ci", "as_cs"];
    let name = match id {
        576 => "utf8mb3_croatian_ci".into(),
        608 => "utf8mb4_croatian_ci".into(),
        640 => "ucs2_croatian_ci".into(),
        672 => "utf16_croatian_ci".into(),
        736 => "utf32_croatian_ci".into(),
        1024..2048 => {
            let padded = CollationId(id - 1024).get()?.name;
            let (at, _) = padded.rmatch_indices('_').next()?;
            format!("{}_nopad{}", &padded[..at], &padded[at..])
        }
        2048.. => {
            let n = usize::from(id - 2048);
            let (language, suffix) = (*TAILORINGS.get(n >> 3 & 31)?, SUFFIXES[n & 3]);
            if language.is_empty() && n >> 3 & 31 != 0 {
                return None;
            }
            let charset = CHARSETS.get(n >> 8)?;
            let language = match language {
                "" => String::new(),
                language => format!("{language}_"),
            };
            format!("{charset}_uca1400_{language}{suffix}")
        }
        _ => return None,
    };
    Collation::by_name(&name).map(|c| c.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mariadb_ids_map_to_the_nearest_collation() {
        for (id, ours) in [
            (45, Some("utf8mb4_general_ci")),
            (608, Some("utf8mb4_croatian_ci")),
            (609, None),
            (1032, Some("latin1_swedish_ci")),
            (1069, Some("utf8mb4_general_ci")),
            (1070, Some("utf8mb4_0900_bin")),
            (1098, Some("koi8r_bin")),
            (1248, Some("utf8mb4_0900_ai_ci")),
            (2048, Some("utf8mb3_unicode_520_ci")),
            (2304, Some("utf8mb4_0900_ai_ci")),
            (2311, Some("utf8mb4_0900_as_cs")),
            (2368, Some("utf8mb4_sv_0900_ai_ci")),
            (2421, Some("utf8mb4_es_trad_0900_as_cs")),
            (2472, None),
            (2560, None),
            (65535, None),
        ] {
            let found = collation_of_source(id).map(|c| c.known().name);
            assert_eq!(found, ours, "{id}");
        }
    }
}
