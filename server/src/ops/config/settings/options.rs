//! Settings as options of the server, and of logs and traces.

use canopy_topology::TopologyLimits;

use super::Settings;
use super::files::{archive_trust, collector, database, family_rates, tls};
use crate::access::AccessOptions;
use crate::jobs::refusals::RefusalOptions;
use crate::ops::audit::AuditOptions;
use crate::ops::config::{AdminListen, AuditFolder, ConfigError, Lifetime, Options};
use crate::ops::telemetry::{LogFormat, Telemetry};
use crate::replan::ReplanOptions;
use crate::store::ArchiveTrust;

impl Settings {
    /// The options of the server.
    ///
    /// # Errors
    /// No data directory is given and no home directory is known; the file of rates cannot be read.
    pub fn into_options(self) -> Result<Options, ConfigError> {
        const GIVEN: &str = "every setting without a value has a default";
        let all = self.filled()?;
        Ok(Options {
            listen: all.listen,
            admin_listen: match all.admin_listen.expect(GIVEN) {
                AdminListen::Off => None,
                AdminListen::At(address) => Some(address),
            },
            users_socket: all.users_socket,
            tls: tls(all.tls_certificate, all.tls_key, all.tls_client_ca)?,
            access: AccessOptions {
                rules: all.access,
                tokens: all.tokens.expect(GIVEN),
                development: all.dev.expect(GIVEN),
            },
            audit: match all.audit.expect(GIVEN) {
                AuditFolder::Off => None,
                AuditFolder::At(folder) => Some(AuditOptions {
                    folder,
                    bytes_max: all.audit_bytes.expect(GIVEN),
                    when_unwritable: all.audit_when_full.expect(GIVEN),
                }),
            },
            archive_trust: match &all.archive_signers {
                Some(path) => archive_trust(path)?,
                None if all.dev == Some(true) => ArchiveTrust::Everything,
                None => ArchiveTrust::own(),
            },
            data_dir: all.data_dir.expect(GIVEN),
            database: database(all.database.as_deref(), all.database_password_file.as_deref())?,
            database_connections: all.database_connections.expect(GIVEN),
            database_when_away: all.database_when_away.expect(GIVEN),
            role: all.role.expect(GIVEN),
            store_bytes_max: all.store_bytes.expect(GIVEN),
            worker_count: all.workers.expect(GIVEN),
            queue_length_max: all.queue_length.expect(GIVEN),
            queue_bytes_max: all.queue_bytes.expect(GIVEN),
            job_memory_bytes_max: all.job_memory_bytes.expect(GIVEN),
            limits: TopologyLimits {
                nodes_max: all.max_nodes.expect(GIVEN),
                links_max: all.max_links.expect(GIVEN),
                bytes_max: all.max_request_bytes.expect(GIVEN),
            },
            family_rates: all.family_rates.as_deref().map(family_rates).transpose()?.unwrap_or_default(),
            isolated_tenants: all.isolate_tenants.expect(GIVEN),
            refusals: RefusalOptions {
                count_max: all.negative_entries.expect(GIVEN),
                lifetime: all.negative_ttl.expect(GIVEN).0,
            },
            replans: ReplanOptions {
                window: all.replan_window.expect(GIVEN).0,
                per_second: all.replans_per_second.expect(GIVEN),
                debounce: all.fault_debounce.expect(GIVEN).0,
                hold_down: all.fault_hold_down.expect(GIVEN).0,
                plans_ahead: all.plan_ahead.expect(GIVEN),
                pinned_ahead: all.plan_ahead_pinned.expect(GIVEN),
            },
            default_deadline: all.default_deadline.expect(GIVEN).0,
            max_deadline: all.max_deadline.expect(GIVEN).0,
            drain_timeout: all.drain_timeout.expect(GIVEN).0,
            loopback_drain: all.allow_loopback_drain.expect(GIVEN),
            has_reflection: all.reflection.expect(GIVEN),
            has_debug_pages: all.debug_pages.expect(GIVEN),
            has_console: all.console.expect(GIVEN),
            lifetime: Lifetime::Daemon,
        })
    }

    /// The options of logs and traces.
    ///
    /// # Errors
    /// The filter or the endpoint cannot be read, or settings of the collector are there without others.
    pub fn telemetry(&self) -> Result<Telemetry, ConfigError> {
        let format = self.log_format.unwrap_or(LogFormat::Auto);
        Ok(Telemetry::new(self.log.clone(), format, collector(self)?)?)
    }
}
