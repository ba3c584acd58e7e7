//! Write amplification against closed forms and published tables, and laws of conservation.

use super::*;
use crate::{InitialState, Model, PAGE_BYTES};
use proptest::prelude::*;
use testdrive_core::SplitMix64;

/// A layer of single pages a unit, with so many superblocks of so many pages for the data.
fn layer(spare: f64, block_pages: u32, blocks: u32, initial_state: InitialState) -> TranslationLayer {
    layer_of_units(1, spare, block_pages, blocks, initial_state)
}

fn layer_of_units(
    unit_pages: u64,
    spare: f64,
    block_pages: u32,
    blocks: u32,
    initial_state: InitialState,
) -> TranslationLayer {
    let mut parameters = Model::builtin("enterprise-mixed").unwrap().parameters().clone();
    parameters.program_unit_bytes = unit_pages * PAGE_BYTES;
    parameters.nand_page_bytes = PAGE_BYTES;
    parameters.over_provisioning = spare;
    parameters.superblocks = blocks;
    let pages = (f64::from(block_pages) * f64::from(blocks) / (1.0 + spare)).round() as u64;
    parameters.capacity_bytes = pages * PAGE_BYTES;
    parameters.initial_state = initial_state;
    TranslationLayer::new(&parameters)
}

fn write(layer: &mut TranslationLayer, page: u32) {
    if layer.write(page) {
        layer.close_unit();
        layer.steps().for_each(drop);
    }
}

/// Write amplification of so many times the drive's pages, after as many.
fn settled(layer: &mut TranslationLayer, rounds: f64, mut next: impl FnMut() -> u32) -> f64 {
    let writes = (f64::from(layer.user_pages()) * rounds) as u64;
    for _ in 0..writes {
        write(layer, next());
    }
    let before = layer.counters();
    for _ in 0..writes {
        write(layer, next());
    }
    layer.counters().since(&before).write_amplification()
}

fn uniform(layer: &TranslationLayer, seed: u64) -> impl FnMut() -> u32 {
    let (mut random, pages) = (SplitMix64::new(seed), u64::from(layer.user_pages()));
    move || random.below(pages) as u32
}

fn assert_within(what: &str, measured: f64, expected: f64, tolerance: f64) {
    println!("{what}: {measured:.3} against {expected:.3}");
    assert!((measured / expected - 1.0).abs() <= tolerance, "{what}: {measured:.3} against {expected:.3}");
}

#[test]
fn the_closed_form_is_the_published_one() {
    for (spare, expected) in [(0.07, 7.82), (0.125, 4.68), (0.28, 2.48)] {
        let amplification = closed_form_write_amplification(1.0 + spare);
        assert!((amplification - expected).abs() < 0.005, "{spare}: {amplification}");
    }
    assert!(closed_form_write_amplification(1000.0) < 1.001);
}

#[test]
fn uniform_random_writes_amplify_as_the_table_says() {
    for (block_pages, blocks, expected) in
        [(4096, 600, [7.82, 4.68, 2.48]), (256, 4096, [7.60, 4.60, 2.46]), (64, 8192, [7.00, 4.38, 2.40])]
    {
        for (spare, expected) in [0.07, 0.125, 0.28].into_iter().zip(expected) {
            let mut layer = layer(spare, block_pages, blocks, InitialState::Steady);
            let next = uniform(&layer, 1);
            let measured = settled(&mut layer, 1.5, next);
            let name = format!("{block_pages} pages a block, {:.1} % spare", spare * 100.0);
            assert_within(&name, measured, expected, 0.01);
        }
    }
}

#[test]
fn hot_and_cold_pages_amplify_as_the_table_says() {
    for (hot_writes, hot_pages, expected) in [(0.8, 0.2, [7.93, 4.95, 2.80]), (0.9, 0.1, [8.63, 5.58, 3.29])]
    {
        for (spare, expected) in [0.07, 0.125, 0.28].into_iter().zip(expected) {
            let mut layer = layer(spare, 256, 4096, InitialState::Steady);
            let pages = u64::from(layer.user_pages());
            let hot = (pages as f64 * hot_pages) as u64;
            let mut random = SplitMix64::new(2);
            let next = move || {
                let is_hot = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= hot_writes;
                if is_hot {
                    random.below(hot) as u32
                } else {
                    (hot + random.below(pages - hot)) as u32
                }
            };
            let measured = settled(&mut layer, 5.0, next);
            assert_within(
                &format!("{hot_writes} to {hot_pages}, {:.1} %", spare * 100.0),
                measured,
                expected,
                0.01,
            );
        }
    }
}

/// Writes until reclaiming moves its first page; returns the writes as a share of the drive's pages.
fn until_the_cliff(layer: &mut TranslationLayer, mut next: impl FnMut() -> u32) -> f64 {
    let mut writes = 0;
    while layer.counters().moved_pages == 0 {
        write(layer, next());
        writes += 1;
    }
    f64::from(writes) / f64::from(layer.user_pages())
}

/// Write amplification of each span of so many of the drive's pages.
fn by_spans(
    layer: &mut TranslationLayer,
    share: f64,
    count: usize,
    mut next: impl FnMut() -> u32,
) -> Vec<f64> {
    let writes = (f64::from(layer.user_pages()) * share) as u64;
    let span = |_| {
        let before = layer.counters();
        for _ in 0..writes {
            write(layer, next());
        }
        layer.counters().since(&before).write_amplification()
    };
    (0..count).map(span).collect()
}

/// The peak is over a quarter of the over-provisioning: right at the cliff the first victims are dearer still.
#[test]
fn random_writes_after_a_sequential_fill_meet_a_cliff_a_peak_a_dip_and_settle() {
    for (spare, peak, settled) in [(0.07, 12.0, 7.82), (0.28, 3.56, 2.48)] {
        let mut layer = layer(spare, 4096, 800, InitialState::Written);
        let mut next = uniform(&layer, 3);
        let cliff = until_the_cliff(&mut layer, &mut next);
        assert_within("cliff", cliff, spare, 0.02);
        let amplification = by_spans(&mut layer, spare / 4.0, 60, &mut next);
        assert_within("peak", amplification[0], peak, 0.01);
        assert!(
            amplification.iter().all(|span| *span <= amplification[0]),
            "nothing is worse than the cliff"
        );
        let dip = amplification.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(dip < 0.98 * settled, "a dip to {dip} below {settled}");
        let end = &amplification[40..];
        assert_within("settled", end.iter().sum::<f64>() / end.len() as f64, settled, 0.01);
    }
}

#[test]
fn random_writes_to_an_empty_drive_amplify_only_once_all_of_the_nand_is_used() {
    for ratio in [1.07, 1.28_f64] {
        let mut layer = layer(ratio - 1.0, 4096, 800, InitialState::Empty);
        let mut next = uniform(&layer, 4);
        assert_within("cliff", until_the_cliff(&mut layer, &mut next), ratio, 0.005);
        // What was written first has the chance e^-a to be still valid.
        let first = by_spans(&mut layer, 0.01, 1, next)[0];
        assert_within("at first", first, 1.0 / (1.0 - (-ratio).exp()), 0.01);
    }
}

/// Victims are emptied unit by unit then, and must be empty in time all the same: whatever is late is spare that the table does
/// not have.
#[test]
fn units_of_many_pages_amplify_as_the_table_says_with_few_superblocks_and_little_spare_too() {
    for (spare, expected) in [(0.07, 7.82), (0.28, 2.48)] {
        let mut layer = layer_of_units(48, spare, 48 * 48, 400, InitialState::Steady);
        let next = uniform(&layer, 3);
        let measured = settled(&mut layer, 1.0, next);
        assert_within(&format!("{spare} spare"), measured, expected, 0.01);
    }
}

#[test]
fn units_of_many_pages_and_scaled_drives_amplify_alike() {
    for (capacity, separate) in [("4GiB", "false"), ("16GiB", "false"), ("16GiB", "true")] {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model
            .set_all([
                ("capacity", capacity),
                ("op", "28%"),
                ("initial_state", "steady"),
                ("separate_moved_data", separate),
            ])
            .unwrap();
        let mut layer = TranslationLayer::new(model.parameters());
        let next = uniform(&layer, 5);
        let measured = settled(&mut layer, 1.0, next);
        let expected = closed_form_write_amplification(layer.physical_ratio());
        assert_within(&format!("{capacity}, apart: {separate}"), measured, expected, 0.015);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done, valid pages are mapped pages, nothing is lost or found twice, and every program is accounted for.
    #[test]
    fn pages_are_conserved(
        pages in 200_u32..3000, unit_pages in 1_u64..9, blocks in 8_u32..40, spare in 0.02_f64..0.5,
        initial in 0_usize..3, separate in any::<bool>(), seed in any::<u64>(),
    ) {
        let mut parameters = Model::builtin("enterprise-mixed").unwrap().parameters().clone();
        parameters.nand_page_bytes = PAGE_BYTES;
        parameters.program_unit_bytes = unit_pages * PAGE_BYTES;
        parameters.capacity_bytes = u64::from(pages) * PAGE_BYTES;
        parameters.over_provisioning = spare;
        parameters.superblocks = blocks;
        parameters.separate_moved_data = separate;
        parameters.compresses_to = if seed % 2 == 0 { 1.0 } else { 0.14 };
        parameters.initial_state = [InitialState::Empty, InitialState::Written, InitialState::Steady][initial];
        let mut layer = TranslationLayer::new(&parameters);
        let mut mapped = vec![initial != 0; pages as usize];
        let mut random = SplitMix64::new(seed);
        let mut programmed = 0;
        for _ in 0..5 * pages {
            let page = random.below(u64::from(pages)) as u32;
            let mut full = false;
            match random.below(*[3, 8, 50].get(seed as usize % 3).expect("a third")) {
                0 => {
                    let end = (page + random.below(40) as u32).min(pages);
                    let held = mapped[page as usize..end as usize].iter().filter(|held| **held).count();
                    mapped[page as usize..end as usize].fill(false);
                    prop_assert_eq!(layer.unmap(page..end), held as u64);
                }
                1 => full = true,
                _ => {
                    layer.set_stored_share(random.below(100) as f64 / 100.0);
                    full = layer.write(page);
                    mapped[page as usize] = true;
                }
            }
            if full {
                programmed += layer.close_unit().map_or(0, |closed| closed.pages);
                for step in layer.steps() {
                    if let ReclaimStep::Program(closed) = step {
                        prop_assert!(seed % 2 == 1 || u64::from(closed.pages) == unit_pages);
                        prop_assert!(u64::from(closed.pages) >= unit_pages);
                        programmed += closed.pages;
                    }
                }
            }
            prop_assert!(layer.is_conserved());
        }
        let held = mapped.iter().filter(|held| **held).count();
        prop_assert_eq!(layer.mapped_pages(), held as u64);
        let mut slots: Vec<u32> = (0..pages).filter_map(|page| layer.slot_of(page)).collect();
        for page in 0..pages {
            prop_assert_eq!(layer.is_mapped(page), mapped[page as usize]);
        }
        slots.sort_unstable();
        slots.dedup();
        prop_assert_eq!(slots.len(), held, "two pages in one place");
        // To open a unit may reclaim too; what that asks for is done with the next unit.
        let waiting: u32 = layer
            .steps()
            .map(|step| if let ReclaimStep::Program(closed) = step { closed.pages } else { 0 })
            .sum();
        let counters = layer.counters();
        let open = layer.host_unit.pages + layer.moved_unit.pages;
        prop_assert_eq!(counters.host_pages + counters.moved_pages, u64::from(programmed + open + waiting));
    }
}

/// Data that is compressed to a share leaves the rest to the over-provisioning: the closed form at a / share.
#[test]
fn compression_adds_to_the_over_provisioning() {
    for share in [0.5, 0.75] {
        let mut parameters = Model::builtin("enterprise-mixed").unwrap().parameters().clone();
        parameters.capacity_bytes = 4 << 30;
        parameters.over_provisioning = 0.07;
        parameters.compresses_to = 0.14;
        parameters.initial_state = InitialState::Empty;
        let mut layer = TranslationLayer::new(&parameters);
        layer.set_stored_share(share);
        let next = uniform(&layer, 6);
        let measured = settled(&mut layer, 6.0, next) / share;
        let expected = closed_form_write_amplification(layer.physical_ratio() / share);
        assert_within(&format!("{share} stored"), measured, expected, 0.03);
    }
}
