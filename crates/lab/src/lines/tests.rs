//! Reports in the layouts of several versions of perf (tests/c2c: perf's layouts with invented
//! figures), and errors.

use super::*;

const X86_5_15: &str = include_str!("../../tests/c2c/perf-5.15-x86.txt");
const X86_6_1: &str = include_str!("../../tests/c2c/perf-6.1-x86.txt");
const ARM_6_1: &str = include_str!("../../tests/c2c/perf-6.1-arm.txt");

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn x86_layouts_are_parsed() {
    for (text, version) in [(X86_5_15, "5.15"), (X86_6_1, "6.1")] {
        let lines = report::read(text).expect("it has the tables");
        assert_eq!(lines.len(), 2, "{version}");
        let first = &lines[0];
        assert_eq!(first.address, "0x7f31d40a2080");
        assert!(close(first.share, 0.912), "{version}: {first:?}");
        assert_eq!(
            [first.records, first.loads, first.stores],
            [24_521, 12_021, 12_500],
            "{version}"
        );
        assert_eq!(
            [first.hitm_local, first.hitm_remote, first.peer],
            [4101, 1211, 0],
            "{version}"
        );
        assert_eq!(first.places.len(), 2, "{version}");
        let [reads, writes] = [&first.places[0], &first.places[1]];
        assert_eq!(
            reads.symbol,
            "btr_search_guess_on_hash(dict_index_t*, long)"
        );
        assert_eq!(
            [&reads.offset, &reads.code, &reads.object, &reads.source],
            ["0x8", "0x56260a111a22", "mariadbd", "btr0sea.cc:1034"]
        );
        assert!(close(reads.hitm, 0.881) && close(reads.stores, 0.0));
        assert_eq!((reads.records, reads.processors), (15_012, 24));
        assert!(close(writes.hitm, 0.206) && close(writes.stores, 1.0));
        let kernel = &lines[1].places[0];
        assert_eq!(
            [&kernel.symbol, &kernel.object],
            ["update_load_avg", "[kernel]"]
        );
    }
}

#[test]
fn arm_lines_are_ranked_by_peer() {
    let lines = report::read(ARM_6_1).expect("it has the tables");
    let [line] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert!(close(line.share, 1.0));
    assert_eq!((line.peer, line.hitm_local, line.loads), (940, 0, 18_840));
    assert_eq!(line.places[1].symbol, "count_read");
    assert!(close(line.places[1].hitm, 0.939) && close(line.places[0].stores, 1.0));
}

#[test]
fn report_renders_as_text_and_json() {
    let report = Report {
        schema: SCHEMA,
        partial: true,
        pid: 1,
        command: "mariadbd".into(),
        lines: report::read(X86_6_1).expect("it has the tables"),
    };
    let text = shown(&report, 1);
    assert!(text.contains("cache line 0x7f31d40a2080: 91.2 %"), "{text}");
    assert!(text.contains("rw_lock_s_unlock_func  mariadbd  sync0rw.h:312"));
    assert!(text.contains("and 1 lines more") && text.contains("partial"));
    assert!(!text.contains("update_load_avg"));
    let json = serde_json::to_value(&report).expect("serialises");
    assert_eq!(json["lines"][1]["places"][0]["processors"], 3);
}

#[test]
fn empty_and_malformed_reports_are_handled() {
    let empty = "=====\n  Shared Data Cache Line Table  \n=====\n#\n# Index  Address\n# .....  .......\n#\n";
    assert_eq!(report::read(empty), Some(Vec::new()));
    assert_eq!(report::read("nothing of the kind"), None);
    // Cut at any point, and with non-ASCII characters: no panic.
    for text in [X86_6_1, ARM_6_1] {
        for cut in (0..text.len()).step_by(97) {
            let cut = text.get(..cut).unwrap_or_default().replace('0', "é");
            let _ = report::read(&cut);
        }
    }
}

#[test]
fn perf_errors_become_one_line() {
    for said in [
        "failed: memory events not supported",
        "Permission denied",
        "",
        "event syntax error: 'cpu/mem-loads/'\n  line two",
        "some failure\nthat nobody knows\n",
    ] {
        let text = refusal(said);
        assert!(!text.contains('\n') && text.len() > 20, "{text}");
    }
    assert!(refusal("Operation not permitted").contains("paranoid"));
    assert!(refusal("memory events not supported").contains("does not sample"));
    assert!(refusal("some failure\nthat nobody knows\n").contains("that nobody knows"));
}
