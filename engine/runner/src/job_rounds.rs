//! A group of phases that is run in rounds until what is tracked is steady. Documented in `docs/job.md`.

use crate::error::RunError;
use crate::job::PhaseJob;
use crate::job_check::{check, drawn_of};
use crate::job_defaults;
use crate::job_generated::Measure;
use serde::Deserialize;
use std::collections::HashSet;
use testdrive_core::SplitMix64;

/// A `rounds` element: its phases, in order, are a round.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundsJob {
    /// For people, and for the phases to say to which group they belong.
    #[serde(default = "default_name")]
    pub name: String,
    /// What a round is made of.
    pub phases: Vec<PhaseJob>,
    /// What must be steady, all of it in the same window.
    pub tracked: Vec<Tracked>,
    /// After so many rounds it ends all the same.
    #[serde(default = "job_defaults::rounds_max")]
    pub rounds_max: u32,
    /// Rounds that are judged together.
    #[serde(default = "job_defaults::window")]
    pub window: u32,
    /// (max - min) / mean of a steady window, at most.
    #[serde(default = "job_defaults::range_share")]
    pub range_share: f64,
    /// What the best line climbs or falls over a steady window / mean, at most.
    #[serde(default = "job_defaults::slope_share")]
    pub slope_share: f64,
}

/// A figure of one of the phases, which is taken in each round.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracked {
    /// The phase's name.
    pub phase: String,
    /// Which figure of it.
    pub measure: Measure,
}

fn default_name() -> String {
    "rounds".into()
}

/// The most rounds of a group.
const GROUP_ROUNDS_MAX: u32 = 1_000;

impl RoundsJob {
    /// Where a phase of this name stands in a round.
    pub fn member(&self, name: &str) -> Option<usize> {
        self.phases.iter().position(|phase| phase.name() == name)
    }

    /// Whether the group makes sense; its phases are looked at by themselves.
    ///
    /// # Errors
    /// A usage error that names the key and the value.
    pub fn check(&self) -> Result<(), RunError> {
        let RoundsJob { phases, tracked, rounds_max, window, range_share, slope_share, .. } = self;
        check(!phases.is_empty(), "the number of phases", 0, "at least one")?;
        let mut names = HashSet::new();
        for phase in phases {
            let name = phase.name();
            check(names.insert(name), "the name of two phases", name, "each phase of a round its own")?;
        }
        check(!tracked.is_empty(), "the number of tracked", 0, "at least one")?;
        for one in tracked {
            let wanted = "the name of one of the phases of the round";
            check(names.contains(one.phase.as_str()), "phase of tracked", &one.phase, wanted)?;
        }
        let rounds_wanted = "a number from 1 to 1000";
        check((1..=GROUP_ROUNDS_MAX).contains(rounds_max), "rounds_max", rounds_max, rounds_wanted)?;
        check((2..=*rounds_max).contains(window), "window", window, "a number from 2 to rounds_max")?;
        for (key, share) in [("range_share", *range_share), ("slope_share", *slope_share)] {
            check(share > 0.0 && share <= 10.0, key, share, "a share above 0, at most 10")?;
        }
        Ok(())
    }
}

impl PhaseJob {
    /// The phase as it is run in a round: what is random is drawn from a sequence that no other turn of the group has. With the same one
    /// every round would write over the same places again, and the drive would never see more of them. It follows from the phase's name,
    /// which no other of the group has, and not from its place: what a drive does not support is left out before it.
    #[must_use]
    pub fn in_round(&self, round: u32) -> PhaseJob {
        let mut phase = self.clone();
        let drawn = |seed: u64| {
            let of_phase = SplitMix64::new(seed ^ drawn_of(self.name())).next_u64();
            // Readers of JSON that have floating-point numbers only still read it exactly.
            SplitMix64::new(of_phase ^ u64::from(round)).next_u64() >> 11
        };
        match &mut phase {
            PhaseJob::Prepare(job) => job.seed = drawn(job.seed),
            PhaseJob::Synthetic(job) => job.seed = drawn(job.seed),
            PhaseJob::Replay(_) => {}
        }
        phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, Step};
    use std::collections::HashSet;

    fn message(rest: &str) -> String {
        let phases = r#"{"kind":"synthetic","name":"a","ios":1},{"kind":"synthetic","name":"b","ios":1}"#;
        let rest = rest.replace("PHASES", &format!(r#""phases":[{phases}]"#));
        let text = format!(
            r#"{{"version":1,"drive":{{"uri":"null:"}},"output":"a.rec","phases":[{{"kind":"rounds","name":"matrix",{rest}}}]}}"#
        );
        Job::parse(&text).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_group_that_makes_no_sense_is_refused_with_the_key_and_the_value() {
        let tracked = r#""tracked":[{"phase":"a","measure":"iops"}]"#;
        assert_eq!(message(&format!("PHASES,{tracked}")), "");
        for (rest, wanted) in [
            (format!(r#""phases":[],{tracked}"#), "the number of phases is 0"),
            ("PHASES".into(), "missing field `tracked`"),
            (r#"PHASES,"tracked":[]"#.into(), "the number of tracked is 0"),
            (r#"PHASES,"tracked":[{"phase":"c","measure":"iops"}]"#.into(), "phase of tracked is c"),
            (r#"PHASES,"tracked":[{"phase":"a","measure":"mood"}]"#.into(), "mood"),
            (format!(r#"PHASES,{tracked},"window":1"#), "window is 1"),
            (format!(r#"PHASES,{tracked},"window":6,"rounds_max":5"#), "window is 6"),
            (format!(r#"PHASES,{tracked},"rounds_max":1001"#), "rounds_max is 1001"),
            (format!(r#"PHASES,{tracked},"range_share":0"#), "range_share is 0"),
            (format!(r#"PHASES,{tracked},"roundsmax":5"#), "roundsmax"),
            (
                format!(
                    r#""phases":[{{"kind":"synthetic","ios":1}},{{"kind":"synthetic","ios":1}}],{tracked}"#
                ),
                "the name of two phases is synthetic",
            ),
            (
                format!(r#""phases":[{{"kind":"synthetic","name":"a","ios":1,"depth":0}}],{tracked}"#),
                "phase 0 ('matrix'): 'a': depth is 0",
            ),
            (
                format!(r#""phases":[{{"kind":"rounds","phases":[],{tracked}}}],{tracked}"#),
                "unknown variant `rounds`",
            ),
        ] {
            let told = message(&rest);
            assert!(told.contains(wanted) && told.contains("phase 0 ('matrix')"), "{rest}: {told}");
        }
    }

    #[test]
    fn no_two_turns_of_a_group_draw_the_same_sequence() {
        let seeds_of = |left_out: usize| -> Vec<u64> {
            let members =
                (left_out..56).map(|at| format!(r#"{{"kind":"synthetic","name":"m{at}","ios":1}}"#));
            let members = members.collect::<Vec<_>>().join(",");
            let text = format!(
                r#"{{"version":1,"drive":{{"uri":"null:"}},"output":"a.rec","phases":[
                {{"kind":"rounds","tracked":[{{"phase":"m55","measure":"iops"}}],"phases":[{members}]}}]}}"#
            );
            let job = Job::parse(&text).unwrap();
            let Step::Rounds(group) = &job.phases[0] else { panic!("not a group") };
            assert_eq!((group.rounds_max, group.window), (25, 5));
            let turns =
                group.phases.iter().flat_map(|member| (0..25).map(move |round| member.in_round(round)));
            let seed = |turn| match turn {
                PhaseJob::Synthetic(job) => job.seed,
                other => panic!("{other:?}"),
            };
            turns.map(seed).collect()
        };
        let seeds = seeds_of(0);
        assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), 56 * 25);
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert_eq!(seeds_of(7), seeds[7 * 25..], "what is left out changes nothing of the others");
    }
}
