//! Where things stand in the kernel's binary trace, as its own `format` files say: fields move between kernels.

/// A field of a record or page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Bytes before it.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

impl Field {
    /// The byte after its last.
    pub fn end(self) -> usize {
        self.offset.saturating_add(self.size)
    }
}

/// Why a `format` file is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(String);

/// A page of the ring buffer, as `events/header_page` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    /// The time that the first record's is counted from.
    pub timestamp: Field,
    /// How many bytes of data there are, with flags above.
    pub commit: Field,
    /// Where the data starts.
    pub data_offset: usize,
    /// The whole page.
    pub page_bytes: usize,
}

/// An event's record, as `events/SYSTEM/NAME/format` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLayout {
    /// What its records carry in `common_type`.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

/// A page larger than this is none that a kernel has: the largest sub-buffer is far below.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// Reads `events/header_page`.
///
/// # Errors
/// When a field is missing, or stands where it cannot.
pub fn parse_page_header(text: &str) -> Result<PageLayout, LayoutError> {
    let fields = fields(text);
    let timestamp = field(&fields, "timestamp", &[8])?;
    let commit = field(&fields, "commit", &[4, 8])?;
    let data = find(&fields, "data").ok_or_else(|| missing("data"))?;
    let page_bytes = data.end();
    if page_bytes > PAGE_BYTES_MAX || timestamp.end() > data.offset || commit.end() > data.offset {
        return Err(LayoutError(format!("a page of {page_bytes} bytes, with data from {}", data.offset)));
    }
    Ok(PageLayout { timestamp, commit, data_offset: data.offset, page_bytes })
}

/// Reads an event's `format`.
///
/// # Errors
/// When it has no number or no field that says which event a record is.
pub fn parse_event_format(text: &str) -> Result<EventLayout, LayoutError> {
    let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
    let id = id.ok_or_else(|| missing("ID"))?;
    let layout = EventLayout { id, fields: fields(text) };
    let common_type = layout.field("common_type", &[2])?;
    if common_type.offset != 0 {
        return Err(LayoutError(format!("common_type stands at {}", common_type.offset)));
    }
    Ok(layout)
}

impl EventLayout {
    /// A field of one of these sizes.
    ///
    /// # Errors
    /// When there is none.
    pub fn field(&self, name: &str, sizes: &[usize]) -> Result<Field, LayoutError> {
        field(&self.fields, name, sizes)
    }

    /// A field of any size, where there is one.
    pub fn find(&self, name: &str) -> Option<Field> {
        find(&self.fields, name)
    }
}

fn missing(name: &str) -> LayoutError {
    LayoutError(format!("there is no {name}"))
}

fn find(fields: &[(String, Field)], name: &str) -> Option<Field> {
    fields.iter().find(|(own, _)| own == name).map(|(_, field)| *field)
}

fn field(fields: &[(String, Field)], name: &str, sizes: &[usize]) -> Result<Field, LayoutError> {
    let found = find(fields, name).ok_or_else(|| missing(name))?;
    if sizes.contains(&found.size) && found.offset <= PAGE_BYTES_MAX {
        return Ok(found);
    }
    Err(LayoutError(format!("{name} has {} bytes at {}", found.size, found.offset)))
}

/// Lines such as `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs.
fn fields(text: &str) -> Vec<(String, Field)> {
    text.lines().filter_map(parse_field).collect()
}

fn parse_field(line: &str) -> Option<(String, Field)> {
    let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
    let name = declaration.split_whitespace().last()?.split('[').next()?.trim_start_matches('*');
    let number = |key: &str| {
        let value = rest.split(';').find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':'));
        value?.trim().parse().ok()
    };
    Some((name.to_string(), Field { offset: number("offset")?, size: number("size")? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn a_page_header_says_where_its_data_is() {
        let layout = parse_page_header(HEADER).unwrap();
        assert_eq!((layout.data_offset, layout.page_bytes), (16, 4096));
        assert_eq!(layout.commit, Field { offset: 8, size: 8 });
        let narrow =
            HEADER.replace("local_t commit;\toffset:8;\tsize:8", "local_t commit;\toffset:8;\tsize:4");
        assert_eq!(parse_page_header(&narrow).unwrap().commit.size, 4);
    }

    #[test]
    fn a_page_header_that_cannot_be_is_refused() {
        for (from, to) in [
            ("timestamp", "time"),
            ("size:4080", "size:99999999999"),
            ("offset:16", "offset:4"),
            ("size:8", "size:3"),
        ] {
            assert!(parse_page_header(&HEADER.replace(from, to)).is_err(), "{from} -> {to}");
        }
        assert!(parse_page_header("").is_err());
    }

    #[test]
    fn fields_are_found_by_name_whatever_their_type() {
        let text = "name: block_rq_issue\nID: 2104\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
            \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\
            print fmt: \"%d\", REC->dev\n";
        let layout = parse_event_format(text).unwrap();
        assert_eq!(layout.id, 2104);
        assert_eq!(layout.find("rwbs"), Some(Field { offset: 34, size: 10 }));
        assert_eq!(layout.find("cmd"), Some(Field { offset: 60, size: 4 }));
        assert!(layout.field("sector", &[4]).is_err());
        assert!(parse_event_format(&text.replace("ID: 2104", "ID: x")).is_err());
        assert!(parse_event_format(&text.replace("common_type", "type")).is_err());
    }
}
