//! Text whose first line names the columns.

use super::Bad;

/// Where the columns stand that are needed, in the order in which they were asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<const N: usize> {
    indices: [Option<usize>; N],
    /// Cells that a line must have.
    least: usize,
}

impl<const N: usize> Header<N> {
    /// Finds columns by their names, of which any of several may be used; `None` where one of the first `needed` is not there.
    pub fn find(line: &[u8], names: [&[&str]; N], needed: usize) -> Option<Header<N>> {
        let plain = |cell: &[u8]| {
            let cell = cell.trim_ascii();
            let quoted = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\""));
            String::from_utf8_lossy(quoted.unwrap_or(cell)).into_owned()
        };
        let found: Vec<String> = line.split(|&byte| byte == b',').map(plain).collect();
        let indices = names.map(|names| {
            found.iter().position(|column| names.iter().any(|name| column.eq_ignore_ascii_case(name)))
        });
        let last = indices.iter().take(needed).copied().collect::<Option<Vec<usize>>>()?;
        Some(Header { indices, least: last.into_iter().max().map_or(0, |last| last + 1) })
    }

    /// The cells of those columns; empty where a line has none.
    pub fn cells<'l>(&self, line: &'l [u8]) -> Result<[&'l [u8]; N], Bad> {
        let mut cells = [&b""[..]; N];
        let mut count = 0;
        for (at, cell) in line.split(|&byte| byte == b',').enumerate() {
            count = at + 1;
            for (index, slot) in self.indices.iter().zip(&mut cells) {
                if *index == Some(at) {
                    *slot = cell.trim_ascii();
                }
            }
        }
        if count < self.least {
            let reason =
                format!("there are {count} cells, and {} are needed: the line may be cut off", self.least);
            return Err(Bad::new(reason));
        }
        Ok(cells)
    }

    /// Whether a column is there.
    pub fn has(&self, number: usize) -> bool {
        self.indices[number].is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_lines_that_are_too_short_are_refused() {
        let names: [&[&str]; 3] = [&["time"], &["lbn", "obj"], &["core"]];
        let header = Header::find(b"version, \"Time\" ,op,obj", names, 2).unwrap();
        assert_eq!(header.cells(b"1, 17 ,x,5,9").unwrap(), [&b"17"[..], b"5", b""]);
        assert!(header.has(1) && !header.has(2));
        assert!(header.cells(b"1,17,x").unwrap_err().reason().contains("3 cells, and 4 are needed"));
        assert!(Header::find(b"version,when,op,obj", names, 2).is_none());
    }
}
