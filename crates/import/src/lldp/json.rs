//! What `lldpcli show neighbors` writes with `-f json` and with `-f json0`, in one form.
//!
//! `json0` has a list wherever there can be several, and names in fields. `json` has no list around a single thing, and
//! names as keys. Fields that are not asked for are skipped without being kept.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// One or several, or nothing that is of use.
pub(super) struct Many<T>(pub(super) Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("what `lldpcli -f json` writes")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Many<T>, A::Error> {
                let mut found = Vec::new();
                while let Some(item) = items.next_element()? {
                    found.push(item);
                }
                Ok(Many(found))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Many<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| Many(vec![one]))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Many<T>, E> {
                let one: Result<T, E> = T::deserialize(StrDeserializer::new(text));
                Ok(Many(one.into_iter().collect()))
            }
            fn visit_bool<E: Error>(self, _: bool) -> Result<Many<T>, E> {
                Ok(Many::default())
            }
            fn visit_u64<E: Error>(self, _: u64) -> Result<Many<T>, E> {
                Ok(Many::default())
            }
            fn visit_i64<E: Error>(self, _: i64) -> Result<Many<T>, E> {
                Ok(Many::default())
            }
            fn visit_f64<E: Error>(self, _: f64) -> Result<Many<T>, E> {
                Ok(Many::default())
            }
            fn visit_unit<E: Error>(self) -> Result<Many<T>, E> {
                Ok(Many::default())
            }
        }
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// The neighbours of one device.
#[derive(Deserialize)]
pub(super) struct Entry {
    /// The machine that has them.
    pub(super) host: Option<String>,
    /// The switch that has them, instead.
    pub(super) switch: Option<String>,
    /// Devices of network interfaces: `eth2` may be `mlx5_0`.
    #[serde(default)]
    pub(super) devices: BTreeMap<String, String>,
    pub(super) lldp: Many<Lldp>,
}

#[derive(Deserialize)]
pub(super) struct Lldp {
    #[serde(default)]
    interface: Many<Interfaces>,
    /// The whole output may stand where what is in it does.
    lldp: Option<Many<Lldp>>,
}

impl Lldp {
    /// What its interfaces see. Depth is bounded by the parser.
    pub(super) fn seen(self) -> Vec<(String, Chassis)> {
        let inner = self.lldp.into_iter().flat_map(|inner| inner.0).flat_map(Self::seen).collect::<Vec<_>>();
        self.interface.0.into_iter().flat_map(|Interfaces(seen)| seen).chain(inner).collect()
    }
}

/// What each of some interfaces sees.
pub(super) struct Interfaces(pub(super) Vec<(String, Chassis)>);

/// What is at the other end.
#[derive(Default)]
pub(super) struct Chassis {
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
    /// Whether it says what it can do, and whether it forwards packets.
    says: bool,
    forwards: bool,
}

impl Chassis {
    /// Whether it says that it forwards nothing.
    pub(super) fn is_station(&self) -> bool {
        self.says && !self.forwards
    }
}

/// Passes over a value.
fn skip<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// The value of a field that may have a type.
struct Value(Option<String>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a field `value`")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value(Some(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "value" => found = map.next_value::<Many<Self::Value>>()?.text(),
                        _ => skip(&mut map)?,
                    }
                }
                Ok(Value(found))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Many<Value> {
    fn text(self) -> Option<String> {
        self.0.into_iter().find_map(|value| value.0).filter(|text| !text.trim().is_empty())
    }
}

/// Something that a device can do.
#[derive(Deserialize)]
struct Capability {
    #[serde(rename = "type")]
    name: Option<String>,
    #[serde(default)]
    enabled: bool,
}

impl<'de> Deserialize<'de> for Chassis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Chassis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a chassis")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Chassis, A::Error> {
                let mut chassis = Chassis::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "id" => chassis.id = map.next_value::<Many<Value>>()?.text(),
                        "name" => chassis.name = map.next_value::<Many<Value>>()?.text(),
                        "capability" => {
                            for Capability { name, enabled } in map.next_value::<Many<Capability>>()?.0 {
                                chassis.says = true;
                                chassis.forwards |= enabled && matches!(name.as_deref(), Some("Bridge" | "Router"));
                            }
                        }
                        "descr" | "mgmt-ip" | "mgmt-iface" | "ttl" => skip(&mut map)?,
                        // `json` has the name of the chassis as a key.
                        _ => {
                            if let Some(named) = map.next_value::<Many<Self::Value>>()?.0.pop() {
                                chassis = Chassis { name: Some(key), ..named };
                            }
                        }
                    }
                }
                Ok(chassis)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The parts of an interface that say what is at the other end.
#[derive(Deserialize)]
struct Neighbour {
    #[serde(default)]
    chassis: Many<Chassis>,
}

impl<'de> Deserialize<'de> for Interfaces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Interfaces;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an interface")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Interfaces, A::Error> {
                let (mut found, mut name, mut seen) = (Vec::new(), None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => name = map.next_value::<Many<Value>>()?.text(),
                        "chassis" => seen = map.next_value::<Many<Chassis>>()?.0,
                        "via" | "rid" | "age" | "port" | "vlan" | "ppvid" | "pi" | "lldp-med" | "unknown-tlvs" => {
                            skip(&mut map)?;
                        }
                        // `json` has the name of the interface as a key.
                        _ => {
                            for neighbour in map.next_value::<Many<Neighbour>>()?.0 {
                                found.extend(neighbour.chassis.0.into_iter().map(|chassis| (key.clone(), chassis)));
                            }
                        }
                    }
                }
                if let Some(name) = name {
                    found.extend(seen.into_iter().map(|chassis| (name.clone(), chassis)));
                }
                Ok(Interfaces(found))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}
