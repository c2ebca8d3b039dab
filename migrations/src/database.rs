//! Versions of the schema of a shared database: scripts of SQL, each run once and in order.
//!
//! A version only adds, so that servers of the version before go on while the next one is brought in; what they alone need
//! is removed by the version after that.

/// One version of the schema.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseVersion {
    /// Its number: 1, 2, 3 … without gaps.
    pub number: u32,
    /// What it introduced.
    pub name: &'static str,
    /// What makes it of the version before.
    pub script: &'static str,
    /// The oldest version whose servers can work with it.
    pub works_with: u32,
}

/// All versions, oldest first.
pub const DATABASE_VERSIONS: &[DatabaseVersion] = &[
    DatabaseVersion { number: 1, name: "records", script: include_str!("../sql/0001_records.sql"), works_with: 1 },
    DatabaseVersion { number: 2, name: "jobs", script: include_str!("../sql/0002_jobs.sql"), works_with: 1 },
    DatabaseVersion { number: 3, name: "servers", script: include_str!("../sql/0003_servers.sql"), works_with: 2 },
];

/// The version that this build makes.
pub const fn current_database_version() -> u32 {
    DATABASE_VERSIONS[DATABASE_VERSIONS.len() - 1].number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_from_one_without_gaps_and_work_with_themselves_and_the_one_before() {
        for (number, version) in (1_u32..).zip(DATABASE_VERSIONS) {
            assert_eq!(version.number, number);
            assert!(version.works_with <= number && version.works_with + 1 >= number, "{}", version.name);
        }
    }
}
