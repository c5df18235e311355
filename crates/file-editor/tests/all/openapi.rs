//! `docs/openapi.json` describes the plain methods as they are: their parameters are the ones that calls are checked
//! against. That real answers fit it is seen by `cargo xtask test`, which has schemathesis drive a server by it.

use expect_test::expect_file;
use serde_json::{Value, json};

#[test]
fn the_description_has_the_parameters_that_are_enforced() {
    let described = include_str!("../../../../docs/openapi.json");
    let mut described: Value = serde_json::from_str(described).expect("it is JSON");
    for entry in &tools::PLAIN {
        let path = &mut described["paths"][format!("/{}", entry.name)]["post"];
        path["summary"] = entry.description().into();
        path["requestBody"]["content"]["application/json"]["schema"] = entry.input_schema().into();
    }
    described["info"]["version"] = json!(env!("CARGO_PKG_VERSION"));
    let described = serde_json::to_string_pretty(&described).expect("it was JSON") + "\n";
    expect_file!["../../../../docs/openapi.json"].assert_eq(&described);
}
