//! Golden tests of this stage.

#[test]
fn bind_makes_the_golden_trees() {
    crate::golden::check("bind/golden.txt", &|_, bound| Ok(bound.to_string()));
}
