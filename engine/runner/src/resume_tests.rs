use super::*;

fn phases(kinds: &str) -> Vec<Step> {
    let one = |kind: char| {
        let job = match kind {
            'p' => json!({"kind": "prepare", "method": "sequential"}),
            _ => json!({"kind": "synthetic", "duration_ns": 1000}),
        };
        serde_json::from_value(job).unwrap()
    };
    kinds.chars().map(one).collect()
}

#[test]
fn preparation_right_before_a_phase_belongs_to_it_and_no_other() {
    assert_eq!(preparation_of(&phases("ppw"), 2), 0);
    assert_eq!(preparation_of(&phases("ppw"), 1), 0);
    assert_eq!(preparation_of(&phases("ppww"), 3), 3);
    assert_eq!(preparation_of(&phases("pwppw"), 4), 2);
    assert_eq!(preparation_of(&phases("w"), 0), 0);
}

#[test]
fn the_first_difference_is_named_with_its_place() {
    let began = json!({"name": "mixed", "parameters": {"for": 5, "span": 1}});
    assert_eq!(difference("plan", &began, &began), None);
    let now = json!({"name": "mixed", "parameters": {"for": 6, "span": 1}});
    assert_eq!(difference("plan", &began, &now).unwrap(), "plan, parameters, for was 5 and is 6");
    assert_eq!(difference("plan", &json!({"left_out": []}), &json!({})), None);
    let less = json!({"name": "mixed"});
    assert!(difference("plan", &began, &less).unwrap().starts_with("plan, parameters"));
}

fn manifest(names: &[(&str, bool)]) -> Manifest {
    let mut manifest = Manifest::new(RecordingKind::Run, "tsc");
    for (index, (name, complete)) in names.iter().enumerate() {
        let phase = json!({
            "index": index, "name": name, "kind": "synthetic", "measured": true, "start_ns": 0, "end_ns": 1,
            "accounting": {"complete": complete},
        });
        manifest.phases.push(serde_json::from_value(phase).unwrap());
    }
    manifest
}

#[test]
fn what_is_set_aside_is_measured_no_more_and_has_a_name_of_its_own() {
    let mut manifest = manifest(&[("fill", true), ("write", false), ("write-partial", false)]);
    set_phase_aside(&mut manifest, 0);
    set_phase_aside(&mut manifest, 1);
    let names: Vec<&str> = manifest.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["fill-superseded", "write-partial-2", "write-partial"]);
    assert!(!manifest.phases[0].measured && !manifest.phases[1].measured && manifest.phases[2].measured);
}

#[test]
fn phases_of_earlier_gaps_do_not_stand_for_those_of_the_plan() {
    let mut manifest = manifest(&[("a", true), ("b-partial", false), ("b", true)]);
    manifest.other.insert(GAPS.into(), json!([{"set_aside": [1]}]));
    assert_eq!(live_phases(&manifest), [0, 2]);
}

#[test]
fn only_an_interrupted_run_on_a_real_drive_is_gone_on_with() {
    let with = |kind, status, modelled| {
        let mut manifest = Manifest::new(kind, "tsc");
        manifest.status = status;
        manifest.drive = Some(DriveIdentity { modelled, ..DriveIdentity::default() });
        check_status(&manifest)
    };
    assert_eq!(with(RecordingKind::Run, Status::Interrupted, false), Ok(()));
    assert_eq!(with(RecordingKind::Run, Status::Failed, false), Ok(()));
    for (kind, status, modelled) in [
        (RecordingKind::Import, Status::Interrupted, false),
        (RecordingKind::Run, Status::Complete, false),
        (RecordingKind::Run, Status::Running, false),
        (RecordingKind::Run, Status::Interrupted, true),
    ] {
        assert!(with(kind, status, modelled).is_err());
    }
}
