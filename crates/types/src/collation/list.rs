//! Every collation, with MySQL's id, name, and `SORTLEN`.

use super::tables::{
    ASCII_GENERAL_CI, IDENTITY, LATIN1_GENERAL_CI, LATIN1_GENERAL_CS, LATIN1_SWEDISH_CI,
};
use super::tailored::Tailored;
use super::{Collation, Kind, collation, tailoring};
use crate::charset::{ASCII, BINARY, LATIN1, UTF8MB3, UTF8MB4};

/// A collation of UCA 4.0: the language's place in the table of tailorings.
const fn legacy(language: usize) -> Kind {
    Kind::Tailored(Tailored {
        language: &tailoring::ALL[language],
        levels: 1,
        pad: true,
    })
}

/// A collation of UCA 9.0.
const fn language(language: usize, levels: u8) -> Kind {
    Kind::Tailored(Tailored {
        language: &tailoring::ALL[language],
        levels,
        pad: false,
    })
}

/// Every collation, sorted by id.
#[rustfmt::skip]
pub(super) static ALL: [Collation; 124] = [
    collation(8, "latin1_swedish_ci", &LATIN1, Kind::Table(&LATIN1_SWEDISH_CI), 1),
    collation(11, "ascii_general_ci", &ASCII, Kind::Table(&ASCII_GENERAL_CI), 1),
    collation(33, "utf8mb3_general_ci", &UTF8MB3, Kind::General, 1),
    collation(45, "utf8mb4_general_ci", &UTF8MB4, Kind::General, 1),
    collation(46, "utf8mb4_bin", &UTF8MB4, Kind::Table(&IDENTITY), 1),
    collation(47, "latin1_bin", &LATIN1, Kind::Table(&IDENTITY), 1),
    collation(48, "latin1_general_ci", &LATIN1, Kind::Table(&LATIN1_GENERAL_CI), 1),
    collation(49, "latin1_general_cs", &LATIN1, Kind::Table(&LATIN1_GENERAL_CS), 1),
    collation(63, "binary", &BINARY, Kind::Bytes, 1),
    collation(65, "ascii_bin", &ASCII, Kind::Table(&IDENTITY), 1),
    collation(76, "utf8mb3_tolower_ci", &UTF8MB3, Kind::GeneralLower, 1),
    collation(83, "utf8mb3_bin", &UTF8MB3, Kind::Table(&IDENTITY), 1),
    collation(192, "utf8mb3_unicode_ci", &UTF8MB3, Kind::Uca0400, 8),
    collation(193, "utf8mb3_icelandic_ci", &UTF8MB3, legacy(0), 8),
    collation(194, "utf8mb3_latvian_ci", &UTF8MB3, legacy(1), 8),
    collation(195, "utf8mb3_romanian_ci", &UTF8MB3, legacy(2), 8),
    collation(196, "utf8mb3_slovenian_ci", &UTF8MB3, legacy(3), 8),
    collation(197, "utf8mb3_polish_ci", &UTF8MB3, legacy(4), 8),
    collation(198, "utf8mb3_estonian_ci", &UTF8MB3, legacy(5), 8),
    collation(199, "utf8mb3_spanish_ci", &UTF8MB3, legacy(6), 8),
    collation(200, "utf8mb3_swedish_ci", &UTF8MB3, legacy(7), 8),
    collation(201, "utf8mb3_turkish_ci", &UTF8MB3, legacy(8), 8),
    collation(202, "utf8mb3_czech_ci", &UTF8MB3, legacy(9), 8),
    collation(203, "utf8mb3_danish_ci", &UTF8MB3, legacy(10), 8),
    collation(204, "utf8mb3_lithuanian_ci", &UTF8MB3, legacy(11), 8),
    collation(205, "utf8mb3_slovak_ci", &UTF8MB3, legacy(12), 8),
    collation(206, "utf8mb3_spanish2_ci", &UTF8MB3, legacy(13), 8),
    collation(207, "utf8mb3_roman_ci", &UTF8MB3, legacy(14), 8),
    collation(208, "utf8mb3_persian_ci", &UTF8MB3, legacy(15), 8),
    collation(209, "utf8mb3_esperanto_ci", &UTF8MB3, legacy(16), 8),
    collation(210, "utf8mb3_hungarian_ci", &UTF8MB3, legacy(17), 8),
    collation(211, "utf8mb3_sinhala_ci", &UTF8MB3, legacy(18), 8),
    collation(212, "utf8mb3_german2_ci", &UTF8MB3, legacy(19), 8),
    collation(213, "utf8mb3_croatian_ci", &UTF8MB3, legacy(20), 8),
    collation(214, "utf8mb3_unicode_520_ci", &UTF8MB3, Kind::Uca0520, 8),
    collation(215, "utf8mb3_vietnamese_ci", &UTF8MB3, legacy(21), 8),
    collation(223, "utf8mb3_general_mysql500_ci", &UTF8MB3, Kind::General500, 1),
    collation(224, "utf8mb4_unicode_ci", &UTF8MB4, Kind::Uca0400, 8),
    collation(225, "utf8mb4_icelandic_ci", &UTF8MB4, legacy(0), 8),
    collation(226, "utf8mb4_latvian_ci", &UTF8MB4, legacy(1), 8),
    collation(227, "utf8mb4_romanian_ci", &UTF8MB4, legacy(2), 8),
    collation(228, "utf8mb4_slovenian_ci", &UTF8MB4, legacy(3), 8),
    collation(229, "utf8mb4_polish_ci", &UTF8MB4, legacy(4), 8),
    collation(230, "utf8mb4_estonian_ci", &UTF8MB4, legacy(5), 8),
    collation(231, "utf8mb4_spanish_ci", &UTF8MB4, legacy(6), 8),
    collation(232, "utf8mb4_swedish_ci", &UTF8MB4, legacy(7), 8),
    collation(233, "utf8mb4_turkish_ci", &UTF8MB4, legacy(8), 8),
    collation(234, "utf8mb4_czech_ci", &UTF8MB4, legacy(9), 8),
    collation(235, "utf8mb4_danish_ci", &UTF8MB4, legacy(10), 8),
    collation(236, "utf8mb4_lithuanian_ci", &UTF8MB4, legacy(11), 8),
    collation(237, "utf8mb4_slovak_ci", &UTF8MB4, legacy(12), 8),
    collation(238, "utf8mb4_spanish2_ci", &UTF8MB4, legacy(13), 8),
    collation(239, "utf8mb4_roman_ci", &UTF8MB4, legacy(14), 8),
    collation(240, "utf8mb4_persian_ci", &UTF8MB4, legacy(15), 8),
    collation(241, "utf8mb4_esperanto_ci", &UTF8MB4, legacy(16), 8),
    collation(242, "utf8mb4_hungarian_ci", &UTF8MB4, legacy(17), 8),
    collation(243, "utf8mb4_sinhala_ci", &UTF8MB4, legacy(18), 8),
    collation(244, "utf8mb4_german2_ci", &UTF8MB4, legacy(19), 8),
    collation(245, "utf8mb4_croatian_ci", &UTF8MB4, legacy(20), 8),
    collation(246, "utf8mb4_unicode_520_ci", &UTF8MB4, Kind::Uca0520, 8),
    collation(247, "utf8mb4_vietnamese_ci", &UTF8MB4, legacy(21), 8),
    collation(255, "utf8mb4_0900_ai_ci", &UTF8MB4, Kind::Uca0900(1), 0),
    collation(256, "utf8mb4_de_pb_0900_ai_ci", &UTF8MB4, language(22, 1), 0),
    collation(257, "utf8mb4_is_0900_ai_ci", &UTF8MB4, language(23, 1), 0),
    collation(258, "utf8mb4_lv_0900_ai_ci", &UTF8MB4, language(24, 1), 0),
    collation(259, "utf8mb4_ro_0900_ai_ci", &UTF8MB4, language(25, 1), 0),
    collation(260, "utf8mb4_sl_0900_ai_ci", &UTF8MB4, language(26, 1), 0),
    collation(261, "utf8mb4_pl_0900_ai_ci", &UTF8MB4, language(27, 1), 0),
    collation(262, "utf8mb4_et_0900_ai_ci", &UTF8MB4, language(28, 1), 0),
    collation(263, "utf8mb4_es_0900_ai_ci", &UTF8MB4, language(29, 1), 0),
    collation(264, "utf8mb4_sv_0900_ai_ci", &UTF8MB4, language(30, 1), 0),
    collation(265, "utf8mb4_tr_0900_ai_ci", &UTF8MB4, language(31, 1), 0),
    collation(266, "utf8mb4_cs_0900_ai_ci", &UTF8MB4, language(32, 1), 0),
    collation(267, "utf8mb4_da_0900_ai_ci", &UTF8MB4, language(33, 1), 0),
    collation(268, "utf8mb4_lt_0900_ai_ci", &UTF8MB4, language(34, 1), 0),
    collation(269, "utf8mb4_sk_0900_ai_ci", &UTF8MB4, language(35, 1), 0),
    collation(270, "utf8mb4_es_trad_0900_ai_ci", &UTF8MB4, language(36, 1), 0),
    collation(271, "utf8mb4_la_0900_ai_ci", &UTF8MB4, language(37, 1), 0),
    collation(273, "utf8mb4_eo_0900_ai_ci", &UTF8MB4, language(38, 1), 0),
    collation(274, "utf8mb4_hu_0900_ai_ci", &UTF8MB4, language(39, 1), 0),
    collation(275, "utf8mb4_hr_0900_ai_ci", &UTF8MB4, language(40, 1), 0),
    collation(277, "utf8mb4_vi_0900_ai_ci", &UTF8MB4, language(41, 1), 0),
    collation(278, "utf8mb4_0900_as_cs", &UTF8MB4, Kind::Uca0900(3), 0),
    collation(279, "utf8mb4_de_pb_0900_as_cs", &UTF8MB4, language(22, 3), 0),
    collation(280, "utf8mb4_is_0900_as_cs", &UTF8MB4, language(23, 3), 0),
    collation(281, "utf8mb4_lv_0900_as_cs", &UTF8MB4, language(24, 3), 0),
    collation(282, "utf8mb4_ro_0900_as_cs", &UTF8MB4, language(25, 3), 0),
    collation(283, "utf8mb4_sl_0900_as_cs", &UTF8MB4, language(26, 3), 0),
    collation(284, "utf8mb4_pl_0900_as_cs", &UTF8MB4, language(27, 3), 0),
    collation(285, "utf8mb4_et_0900_as_cs", &UTF8MB4, language(28, 3), 0),
    collation(286, "utf8mb4_es_0900_as_cs", &UTF8MB4, language(29, 3), 0),
    collation(287, "utf8mb4_sv_0900_as_cs", &UTF8MB4, language(30, 3), 0),
    collation(288, "utf8mb4_tr_0900_as_cs", &UTF8MB4, language(31, 3), 0),
    collation(289, "utf8mb4_cs_0900_as_cs", &UTF8MB4, language(32, 3), 0),
    collation(290, "utf8mb4_da_0900_as_cs", &UTF8MB4, language(33, 3), 0),
    collation(291, "utf8mb4_lt_0900_as_cs", &UTF8MB4, language(34, 3), 0),
    collation(292, "utf8mb4_sk_0900_as_cs", &UTF8MB4, language(35, 3), 0),
    collation(293, "utf8mb4_es_trad_0900_as_cs", &UTF8MB4, language(36, 3), 0),
    collation(294, "utf8mb4_la_0900_as_cs", &UTF8MB4, language(37, 3), 0),
    collation(296, "utf8mb4_eo_0900_as_cs", &UTF8MB4, language(38, 3), 0),
    collation(297, "utf8mb4_hu_0900_as_cs", &UTF8MB4, language(39, 3), 0),
    collation(298, "utf8mb4_hr_0900_as_cs", &UTF8MB4, language(40, 3), 0),
    collation(300, "utf8mb4_vi_0900_as_cs", &UTF8MB4, language(41, 3), 0),
    collation(303, "utf8mb4_ja_0900_as_cs", &UTF8MB4, language(42, 3), 0),
    collation(304, "utf8mb4_ja_0900_as_cs_ks", &UTF8MB4, language(43, 4), 24),
    collation(305, "utf8mb4_0900_as_ci", &UTF8MB4, Kind::Uca0900(2), 0),
    collation(306, "utf8mb4_ru_0900_ai_ci", &UTF8MB4, language(44, 1), 0),
    collation(307, "utf8mb4_ru_0900_as_cs", &UTF8MB4, language(44, 3), 0),
    collation(308, "utf8mb4_zh_0900_as_cs", &UTF8MB4, language(45, 3), 0),
    collation(309, "utf8mb4_0900_bin", &UTF8MB4, Kind::Bytes, 1),
    collation(310, "utf8mb4_nb_0900_ai_ci", &UTF8MB4, language(46, 1), 0),
    collation(311, "utf8mb4_nb_0900_as_cs", &UTF8MB4, language(46, 3), 0),
    collation(312, "utf8mb4_nn_0900_ai_ci", &UTF8MB4, language(47, 1), 0),
    collation(313, "utf8mb4_nn_0900_as_cs", &UTF8MB4, language(47, 3), 0),
    collation(314, "utf8mb4_sr_latn_0900_ai_ci", &UTF8MB4, language(48, 1), 0),
    collation(315, "utf8mb4_sr_latn_0900_as_cs", &UTF8MB4, language(48, 3), 0),
    collation(316, "utf8mb4_bs_0900_ai_ci", &UTF8MB4, language(49, 1), 0),
    collation(317, "utf8mb4_bs_0900_as_cs", &UTF8MB4, language(49, 3), 0),
    collation(318, "utf8mb4_bg_0900_ai_ci", &UTF8MB4, language(50, 1), 0),
    collation(319, "utf8mb4_bg_0900_as_cs", &UTF8MB4, language(50, 3), 0),
    collation(320, "utf8mb4_gl_0900_ai_ci", &UTF8MB4, language(51, 1), 0),
    collation(321, "utf8mb4_gl_0900_as_cs", &UTF8MB4, language(51, 3), 0),
    collation(322, "utf8mb4_mn_cyrl_0900_ai_ci", &UTF8MB4, language(52, 1), 0),
    collation(323, "utf8mb4_mn_cyrl_0900_as_cs", &UTF8MB4, language(52, 3), 0),
];

/// The greatest id, and one more.
pub(super) const IDS: usize = 324;

/// Place in `ALL` of each id; 0xFFFF: no such collation.
pub(super) static PLACES: [u16; IDS] = {
    let mut places = [0xFFFF; IDS];
    let mut i = 0;
    while i < ALL.len() {
        places[ALL[i].id.0 as usize] = i as u16;
        i += 1;
    }
    places
};
