//! `canopy network cost`: what the cables and switches of networks cost, for each and for each endpoint.

use std::path::PathBuf;

use canopy_design::cost::{Bill, Cables, Choice, Cost, Network, Parameters, Part, Price, STANDARD_PARAMETERS, choices};
use serde::Serialize;

use crate::exit::{Failure, words};
use crate::input;
use crate::output::print_json;
use crate::stdout::{print, write_stdout};
use crate::table::Table;

/// Most networks that are priced at once.
const NETWORKS_MAX: usize = 1000;
/// Greatest file of parameters.
const PARAMETERS_BYTES_MAX: usize = 1 << 20;
/// Most kinds of cables listed for people, and in JSON.
const ROWS_TEXT_MAX: usize = 40;
const ROWS_JSON_MAX: usize = 1000;

/// Which networks, and by which prices.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Networks: dfc2:32x32,terminals=16  dragonfly-router:p=4,a=8,h=4  slim-fly:q=19  torus:10x10x10  fat-tree:k=16

Examples:
  canopy network cost dfc2:32x32,terminals=64
  canopy network cost slim-fly:q=19 dragonfly-router:h=7 fat-tree:k=36
  canopy network cost --endpoints 100000
  canopy network cost --print-parameters > prices.toml
  canopy network cost --endpoints 100000 --parameters prices.toml")]
pub(crate) struct CostArgs {
    /// Networks to price; one is listed part by part, several are compared
    #[arg(value_name = "NETWORK")]
    networks: Vec<String>,
    /// Also compare the smallest network of each kind that has this many endpoints
    #[arg(long, value_name = "N")]
    endpoints: Option<u64>,
    /// Prices and lengths, in place of the published ones
    #[arg(long, value_name = "FILE")]
    parameters: Option<PathBuf>,
    /// Print the file of parameters that holds where none is given
    #[arg(long, conflicts_with_all = ["networks", "endpoints", "parameters", "json"])]
    print_parameters: bool,
    /// Print one JSON object as the last line of standard output
    #[arg(long)]
    json: bool,
}

/// Prices the networks, and prints what they cost.
pub(super) fn run(args: &CostArgs) -> Result<(), Failure> {
    if args.print_parameters {
        return write_stdout(STANDARD_PARAMETERS.as_bytes());
    }
    let parameters = parameters(args)?;
    let found = networks(args)?;
    let all: Vec<Priced> = found.into_iter().map(|(kind, network)| Priced::new(kind, network, &parameters)).collect();
    if args.json {
        return print_json("topology cost", &Object::new(&all, &parameters));
    }
    match all.as_slice() {
        [one] => print(&parts(one, &parameters)),
        all => print(&comparison(all, &parameters)),
    }
}

fn parameters(args: &CostArgs) -> Result<Parameters, Failure> {
    let Some(path) = &args.parameters else { return Ok(Parameters::standard()) };
    let bytes = input::bytes(path, PARAMETERS_BYTES_MAX)?;
    let refused = |problem: String| {
        Failure::input(format!("{}: {problem}", path.display()))
            .help("`canopy network cost --print-parameters` prints a file to start from")
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| refused("the file is no text in UTF-8".to_owned()))?;
    Parameters::read(text).map_err(|error| refused(words(&error)))
}

/// The networks that are named, then those that are chosen, with what these are called.
fn networks(args: &CostArgs) -> Result<Vec<(Option<&'static str>, Network)>, Failure> {
    if args.networks.len() > NETWORKS_MAX {
        let count = args.networks.len();
        return Err(Failure::input(format!(
            "{count} networks are too many; at most {NETWORKS_MAX} are priced at once"
        )));
    }
    let mut found = Vec::new();
    for expression in &args.networks {
        let network = Network::read(expression)
            .map_err(|error| Failure::input(format!("`{}`: {}", input::shortened(expression), words(&error))))?;
        found.push((None, network));
    }
    if let Some(endpoints) = args.endpoints {
        let chosen = choices(endpoints).map_err(|error| Failure::input(format!("--endpoints: {}", words(&error))))?;
        found.extend(chosen.into_iter().map(|Choice { kind, network }| (Some(kind), network)));
    }
    if found.is_empty() {
        return Err(Failure::input("no network is given")
            .help("name one, such as `dfc2:32x32,terminals=16`, or compare kinds with `--endpoints N`"));
    }
    Ok(found)
}

/// A network, what it is made of and what that costs.
struct Priced {
    kind: Option<&'static str>,
    network: Network,
    bill: Bill,
    cost: Cost,
}

impl Priced {
    fn new(kind: Option<&'static str>, network: Network, parameters: &Parameters) -> Self {
        let bill = network.bill(&parameters.layout);
        let cost = parameters.cost(&bill);
        Self { kind, network, bill, cost }
    }

    fn per_endpoint(&self) -> String {
        self.cost.total.for_each(self.bill.endpoints).unwrap_or_default()
    }

    fn bisection(&self) -> Option<String> {
        self.network.bisection().map(|(top, bottom)| format!("{top}/{bottom}"))
    }

    fn ports_max(&self) -> u64 {
        self.bill.switches.iter().map(|part| part.ports).max().unwrap_or_default()
    }
}

/// Metres with two decimals.
fn metres(length_cm: u64) -> String {
    format!("{}.{:02}", length_cm / 100, length_cm % 100)
}

/// One network, part by part.
fn parts(priced: &Priced, parameters: &Parameters) -> String {
    let Priced { network, bill, cost, .. } = priced;
    let mut lines = vec![format!("network    {network}"), format!("endpoints  {}", bill.endpoints)];
    lines.extend(priced.bisection().map(|part| format!("bisection  {part} of what the endpoints send")));
    let mut table = Table::new(&["PART", "METRES#", "COUNT#", "EACH#", "TOTAL#"]);
    for part in &bill.switches {
        let each = parameters.switch(part);
        let all = Price::from_ten_thousandths(each.ten_thousandths() * u128::from(part.count));
        let name = format!("switch, {} ports, {} to endpoints", part.ports, part.terminal_ports);
        table.row([name, String::new(), part.count.to_string(), each.to_string(), all.to_string()]);
    }
    for cables in bill.cables.iter().take(ROWS_TEXT_MAX) {
        let Cables { medium, purpose, length_cm, count } = *cables;
        let name = format!("{} cable, {}", medium.name(), purpose.name());
        let each = parameters.cable(medium, length_cm);
        table.row([
            name,
            metres(length_cm),
            count.to_string(),
            each.to_string(),
            parameters.cables(cables).to_string(),
        ]);
    }
    lines.push(table.text());
    if let Some(more) = bill.cables.len().checked_sub(ROWS_TEXT_MAX).filter(|more| *more > 0) {
        lines.push(format!("and {more} more lengths"));
    }
    let currency = &parameters.currency;
    lines.push(format!("total      {} {currency}, {} of it cables", cost.total, cost.cables));
    lines.push(format!("           {} {currency} for each endpoint", priced.per_endpoint()));
    lines.join("\n")
}

/// Several networks side by side; how dear an endpoint is, over the cheapest.
fn comparison(all: &[Priced], parameters: &Parameters) -> String {
    let per_endpoint = format!("{}/ENDPOINT#", parameters.currency);
    let heading = [
        "NETWORK",
        "ENDPOINTS#",
        "SWITCHES#",
        "PORTS#",
        "CABLES#",
        "OPTICAL#",
        "TOTAL#",
        per_endpoint.as_str(),
        "×#",
        "KIND",
    ];
    let mut table = Table::new(&heading);
    let ratios = over_cheapest(all);
    for (priced, ratio) in all.iter().zip(ratios) {
        let Priced { kind, network, bill, cost } = priced;
        let cables: u128 = bill.cables.iter().map(|cables| cables.count).sum();
        table.row([
            network.to_string(),
            bill.endpoints.to_string(),
            bill.switch_count().to_string(),
            priced.ports_max().to_string(),
            cables.to_string(),
            bill.cable_count(canopy_design::cost::Medium::Optical).to_string(),
            cost.total.to_string(),
            priced.per_endpoint(),
            ratio,
            kind.unwrap_or_default().to_owned(),
        ]);
    }
    table.text()
}

/// What an endpoint costs over what it costs in the cheapest network, by network: exact until it is written with two decimals.
fn over_cheapest(all: &[Priced]) -> Vec<String> {
    let fraction = |priced: &Priced| {
        canopy_optimize::Fraction::new(priced.cost.total.ten_thousandths(), priced.bill.endpoints.into())
    };
    let cheapest = all.iter().filter_map(fraction).min();
    let ratio = |priced: &Priced| {
        let ratio = fraction(priced)?.to_float() / cheapest?.to_float();
        ratio.is_finite().then(|| format!("{ratio:.2}"))
    };
    all.iter().map(|priced| ratio(priced).unwrap_or_default()).collect()
}

/// JSON object of `cost`. Amounts are texts of two decimals in the currency.
#[derive(Serialize)]
struct Object<'a> {
    currency: &'a str,
    networks: Vec<NetworkObject>,
}

#[derive(Serialize)]
struct NetworkObject {
    network: String,
    kind: Option<&'static str>,
    endpoints: u64,
    bisection: Option<String>,
    switches: Vec<SwitchObject>,
    cables: Vec<CableObject>,
    cables_omitted: usize,
    switches_total: String,
    cables_total: String,
    total: String,
    per_endpoint: String,
    over_cheapest: String,
}

#[derive(Serialize)]
struct SwitchObject {
    #[serde(flatten)]
    part: Part,
    each: String,
}

#[derive(Serialize)]
struct CableObject {
    medium: &'static str,
    purpose: &'static str,
    length_m: String,
    count: String,
    each: String,
    total: String,
}

impl<'a> Object<'a> {
    fn new(all: &[Priced], parameters: &'a Parameters) -> Self {
        let networks = all.iter().zip(over_cheapest(all));
        let networks = networks.map(|(priced, ratio)| NetworkObject::new(priced, ratio, parameters)).collect();
        Self { currency: &parameters.currency, networks }
    }
}

impl NetworkObject {
    fn new(priced: &Priced, over_cheapest: String, parameters: &Parameters) -> Self {
        let Priced { kind, network, bill, cost } = priced;
        let switches =
            bill.switches.iter().map(|&part| SwitchObject { part, each: parameters.switch(&part).to_string() });
        let cables = bill.cables.iter().take(ROWS_JSON_MAX).map(|cables| CableObject {
            medium: cables.medium.name(),
            purpose: cables.purpose.name(),
            length_m: metres(cables.length_cm),
            count: cables.count.to_string(),
            each: parameters.cable(cables.medium, cables.length_cm).to_string(),
            total: parameters.cables(cables).to_string(),
        });
        Self {
            network: network.to_string(),
            kind: *kind,
            endpoints: bill.endpoints,
            bisection: priced.bisection(),
            switches: switches.collect(),
            cables: cables.collect(),
            cables_omitted: bill.cables.len().saturating_sub(ROWS_JSON_MAX),
            switches_total: cost.switches.to_string(),
            cables_total: cost.cables.to_string(),
            total: cost.total.to_string(),
            per_endpoint: priced.per_endpoint(),
            over_cheapest,
        }
    }
}
