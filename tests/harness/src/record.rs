//! Site maps as they lie in a module: found by their magic, wherever that is.

use cuinstr::prelude::SITES_MAGIC;
use cuinstr::site::SiteMap;

/// Every site map in these bytes, in order.
///
/// # Errors
/// Says what is wrong with a record: its length, or its JSON.
pub fn site_maps(image: &[u8]) -> Result<Vec<SiteMap>, String> {
    let magic = SITES_MAGIC.as_bytes();
    let mut found = Vec::new();
    for at in (0..image.len().saturating_sub(magic.len())).filter(|at| image[*at..].starts_with(magic)) {
        let rest = &image[at + magic.len()..];
        let length =
            rest.get(..8).and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let length = length.filter(|_| rest.get(8) == Some(&b' ')).ok_or("no length behind the magic")?;
        let json = rest.get(9..).and_then(|rest| rest.get(..length)).ok_or("the record is cut off")?;
        found.push(serde_json::from_slice(json).map_err(|error| format!("the record is no site map: {error}"))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_between_other_bytes_and_a_wrong_one_is_an_error() {
        let map = SiteMap { version: 1, file: "a.cu".into(), hash: "0".into(), polls_each: false, counts_fuel: false, sites: Vec::new() };
        let json = map.to_json();
        let record = format!("{SITES_MAGIC}{:08x} {json}", json.len());
        let image = format!("\u{1}\u{2}{record}\0{record}\0\0");
        assert_eq!(site_maps(image.as_bytes()), Ok(vec![map.clone(), map]));
        assert_eq!(site_maps(b"nothing"), Ok(Vec::new()));
        assert!(site_maps(&record.as_bytes()[..record.len() - 1]).is_err_and(|why| why.contains("cut off")));
        assert!(site_maps(format!("{SITES_MAGIC}0000000g {json}").as_bytes()).is_err());
    }
}
