//! The published schema describes what is written, and refuses what is not a plan.

use canopy_plan::PLAN_SCHEMA;
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use serde_json::Value;

use crate::plan_file::samples::{
    blocks_by_hand, by_hand, flow_by_hand, hops_by_hand, steps_by_hand, synthesized, synthesized_by, text,
    trees_by_hand,
};

/// Whether a value fits a schema, for the keywords that ours uses; an unknown keyword fails the test.
fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, argument)| match keyword.as_str() {
        "$schema" | "title" | "description" | "$defs" => true,
        "$ref" => fits(value, root.pointer(argument.as_str().unwrap().strip_prefix('#').unwrap()).unwrap(), root),
        "const" => value == argument,
        "enum" => argument.as_array().unwrap().contains(value),
        "oneOf" => argument.as_array().unwrap().iter().filter(|option| fits(value, option, root)).count() == 1,
        "type" => match argument.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            other => panic!("type {other}"),
        },
        "minimum" => value.as_u64() >= argument.as_u64(),
        "maximum" => value.as_u64() <= argument.as_u64(),
        "minItems" => value.as_array().is_some_and(|items| items.len() as u64 >= argument.as_u64().unwrap()),
        "maxItems" => value.as_array().is_some_and(|items| items.len() as u64 <= argument.as_u64().unwrap()),
        "required" => argument.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
        "properties" => {
            let known = argument.as_object().unwrap();
            known.iter().all(|(name, schema)| value.get(name).is_none_or(|value| fits(value, schema, root)))
        }
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(item, argument, root))),
        "prefixItems" => {
            let schemas = argument.as_array().unwrap();
            let fit = |items: &Vec<Value>| items.iter().zip(schemas).all(|(item, schema)| fits(item, schema, root));
            value.as_array().is_none_or(fit)
        }
        "pattern" => {
            assert_eq!(argument, "^[0-9]+(/[0-9]+)?$");
            let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            value.as_str().is_none_or(|text| text.split('/').count() <= 2 && text.split('/').all(digits))
        }
        other => panic!("keyword {other}"),
    })
}

fn check(plan: &str) -> bool {
    let schema: Value = serde_json::from_str(PLAN_SCHEMA).unwrap();
    fits(&serde_json::from_str(plan).unwrap(), &schema, &schema)
}

#[test]
fn plans_fit_the_schema() {
    assert!(check(&text(&by_hand())));
    assert!(check(&text(&steps_by_hand())));
    assert!(check(&text(&flow_by_hand())));
    for network in ["torus:3x4x2", "torus:4x5,faults=links:1+seed:1"] {
        assert!(check(&text(&synthesized_by(Algorithm::Orbits, network, CollectiveKind::Allreduce))), "{network}");
    }
    for network in [
        "dgx-h100:boxes=3,faults=nics:1+gpus:1+seed:1",
        "mi250:boxes=2",
        "dgx-h100:boxes=128",
        "rail:boxes=3,gpus=4,nv=60GB/s,nic=50GB/s",
    ] {
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce] {
            assert!(check(&text(&synthesized_by(Algorithm::Stages, network, kind))), "{network} {kind}");
        }
    }
    assert!(check(&text(&blocks_by_hand())));
    assert!(check(&text(&trees_by_hand())));
    assert!(check(&text(&hops_by_hand())));
    assert!(check(&text(&synthesized("ring:3", CollectiveKind::Allgather))));
    assert!(check(&text(&synthesized("mesh:2x2", CollectiveKind::Allreduce))));
    assert!(check(&text(&synthesized("ring:5", CollectiveKind::AllToAll))));
}

/// Every field the writer writes is one that the schema knows.
#[test]
fn schema_knows_every_field() {
    let schema: Value = serde_json::from_str(PLAN_SCHEMA).unwrap();
    let trees = synthesized("mesh:4x4", CollectiveKind::Allreduce);
    let patterns = synthesized("ring:5", CollectiveKind::AllToAll);
    let plans = [by_hand(), steps_by_hand(), flow_by_hand(), trees, patterns];
    let written = plans.map(|plan| serde_json::from_str::<Value>(&text(&plan)).unwrap());
    for (path, written) in ["", "/schedule", "/form", "/bound", "/achieved", "/provenance"]
        .into_iter()
        .flat_map(|path| written.iter().map(move |written| (path, written)))
    {
        let known = path.split('/').skip(1).fold(&schema, |schema, name| &schema["properties"][name]);
        // Only plans of an allreduce have a form.
        for name in written.pointer(path).into_iter().flat_map(|found| found.as_object().unwrap().keys()) {
            assert!(known["properties"].get(name).is_some(), "{path}/{name}");
        }
    }
}

#[test]
fn schema_refuses_what_is_no_plan() {
    let plan = text(&by_hand());
    for (from, to) in [
        (r#""canopy":1,"kind""#, r#""canopy":8,"kind""#),
        (r#""kind":"plan""#, r#""kind":"topology""#),
        (r#""shares":"uniform","#, ""),
        (r#""chunks_per_share":6"#, r#""chunks_per_share":0"#),
        (r#"[0,1,1]"#, r#"[0,1]"#),
        (r#"[[0,2],[1,3]]"#, r#"[[0,2],[1]]"#),
        (r#""achieved":{"algbw":"9003/2"}"#, r#""achieved":{"algbw":4501.5}"#),
        (r#""direction":"out","#, ""),
    ] {
        assert!(plan.contains(from), "{from}");
        assert!(!check(&plan.replace(from, to)), "{from} -> {to}");
    }
    let plan = text(&steps_by_hand());
    for (from, to) in [
        (r#""shape":"steps""#, r#""shape":"flow""#),
        (r#""sends":["#, r#""others":["#),
        (r#"[0,"copy",1,0,3,1,2]"#, r#"[0,"copy",1,0,3,0,2]"#),
        (r#"[0,"copy",1,0,3,1,2]"#, r#"[0,1,0,3,1,2]"#),
        (r#"[0,"copy",1,0,3,1,2]"#, r#"[0,"copy",1,0,[],1,2]"#),
        (r#"[0,"copy",1,0,3,1,2]"#, r#"[0,"copy",1,0,["3"],1,2]"#),
        (r#""shares":[3,1]"#, r#""shares":[3,-1]"#),
    ] {
        assert!(plan.contains(from), "{plan}");
        assert!(!check(&plan.replace(from, to)), "{from} -> {to}");
    }
    assert!(check(&plan.replace(r#"[0,"copy",1,0,3,1,2]"#, r#"[0,"copy",1,0,[3,5],1,2]"#)));
    let plan = text(&flow_by_hand());
    let blocks = text(&blocks_by_hand());
    assert!(blocks.contains("[[1,2],[1,0]]") && !check(&blocks.replace("[[1,2],[1,0]]", "[[1,2],[1,-1]]")));
    for (from, to) in [("[0,1,3,[0]]", "[0,1,3,[]]"), (r#""lengths":[0,0,7]"#, r#""lengths":7"#)] {
        assert!(plan.contains(from), "{plan}");
        assert!(!check(&plan.replace(from, to)), "{from} -> {to}");
    }
}
