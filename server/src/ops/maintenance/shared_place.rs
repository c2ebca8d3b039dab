//! A database that servers share, while somebody works on all of it.

use std::io::Write;

use canopy_database::{Address, Database, Options, SchemaError};
use canopy_migrations::current_database_version;

use super::MaintenanceError;
use crate::store::{Opened, SharedSpaces, StoreError, of_database};

/// A database that servers share.
pub(super) struct SharedPlace {
    database: Database,
}

impl SharedPlace {
    /// The one at this address, with so many connections at most.
    pub(super) fn new(address: Address, connections: usize) -> Result<Self, StoreError> {
        let database = Database::new(&Options { address, connections }).map_err(of_database)?;
        Ok(Self { database })
    }

    /// Brings the schema up to date, or says what that would do.
    pub(super) fn migrate(&self, dry_run: bool, output: &mut dyn Write) -> Result<(), MaintenanceError> {
        let (found, known) = (self.version()?, current_database_version());
        if found >= known {
            writeln!(output, "nothing to do: the schema of the database has version {found}")?;
        } else if dry_run {
            writeln!(output, "would migrate the schema of the database from version {found} to {known}")?;
        } else {
            self.bring_up_to_date(output)?;
        }
        Ok(())
    }

    /// Brings the schema up to date, and says so if there was anything to do.
    pub(super) fn bring_up_to_date(&self, output: &mut dyn Write) -> Result<(), MaintenanceError> {
        let migrated = self.database.migrate().map_err(schema_error)?;
        if migrated.from != migrated.to {
            let (from, to) = (migrated.from, migrated.to);
            writeln!(output, "migrated the schema of the database from version {from} to {to}")?;
        }
        Ok(())
    }

    /// Refuses a database that is only to be read where this build cannot read it as it is.
    pub(super) fn require_schema(&self) -> Result<(), MaintenanceError> {
        match self.version()? {
            0 => Err(MaintenanceError::NoSchema),
            found if found < current_database_version() => {
                Err(MaintenanceError::OldSchema { found, needed: current_database_version() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a database that servers use. `instead` says what else can be done.
    pub(super) fn require_no_servers(&self, instead: &'static str) -> Result<(), MaintenanceError> {
        let servers = self.database.servers().map_err(of_database)?;
        if servers.is_empty() {
            return Ok(());
        }
        Err(MaintenanceError::ServersThere { names: servers.join(", "), instead })
    }

    /// Number of jobs that have not ended.
    pub(super) fn unfinished_jobs(&self) -> Result<u64, StoreError> {
        self.database.unfinished_jobs().map_err(of_database)
    }

    /// The spaces in it. Its schema is up to date.
    pub(super) fn spaces(&self) -> Result<SharedSpaces, StoreError> {
        SharedSpaces::open(&self.database)
    }

    /// All of it as a store. Its schema is up to date.
    pub(super) fn open(&self) -> Result<Opened, StoreError> {
        Ok(self.spaces()?.uncached())
    }

    fn version(&self) -> Result<u32, MaintenanceError> {
        self.database.schema_version().map_err(schema_error)
    }
}

fn schema_error(error: SchemaError) -> MaintenanceError {
    match error {
        SchemaError::Database(error) => of_database(error).into(),
        newer @ SchemaError::Newer { .. } => MaintenanceError::Schema(newer),
    }
}
