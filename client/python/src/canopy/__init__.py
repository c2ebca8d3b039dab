"""Client of canopy: `canopy.v1` is generated from the .proto files, `canopy.stream` and `canopy.errors` are hand-written."""
