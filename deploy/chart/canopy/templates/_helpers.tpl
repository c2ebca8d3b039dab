{{/* Names */}}
{{- define "canopy.name" -}}
{{- default "canopyd" .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 12 characters are left for what other names append. */}}
{{- define "canopy.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 51 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 51 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 51 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "canopy.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "canopy.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "canopy.selectorLabels" -}}
app.kubernetes.io/name: {{ include "canopy.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "canopy.labels" -}}
{{ include "canopy.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "canopy.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The service's address in the cluster, which the certificate must name. */}}
{{- define "canopy.host" -}}
{{- printf "%s.%s.svc" (include "canopy.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* Texts that are empty or `true` */}}
{{- define "canopy.hasDatabase" -}}
{{- if or .Values.database.url .Values.database.trial.enabled -}}true{{- end -}}
{{- end -}}

{{- define "canopy.isSplit" -}}
{{- if eq .Values.roles "split" -}}true{{- end -}}
{{- end -}}

{{- define "canopy.hasDatabaseCa" -}}
{{- with .Values.database.ca -}}{{- if or .existingSecret .certificates -}}true{{- end -}}{{- end -}}
{{- end -}}

{{- define "canopy.hasClientCa" -}}
{{- with .Values.tls.clientCa -}}{{- if or .existingSecret .certificates -}}true{{- end -}}{{- end -}}
{{- end -}}

{{- define "canopy.hasAccess" -}}
{{- with .Values.access -}}{{- if or .existingConfigMap .rules -}}true{{- end -}}{{- end -}}
{{- end -}}

{{- define "canopy.hasTokens" -}}
{{- with .Values.tokens -}}{{- if or .existingSecret .content -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* Secrets: the existing one, or that of the chart */}}
{{- define "canopy.tlsSecret" -}}
{{- default (printf "%s-tls" (include "canopy.fullname" .)) .Values.tls.existingSecret -}}
{{- end -}}

{{- define "canopy.databaseSecret" -}}
{{- printf "%s-database" (include "canopy.fullname" .) -}}
{{- end -}}

{{- define "canopy.passwordRef" -}}
{{- with .Values.database.password -}}
name: {{ default (include "canopy.databaseSecret" $) .existingSecret }}
items: [{key: {{ ternary .key "password" (ne .existingSecret "") }}, path: password}]
{{- end -}}
{{- end -}}

{{- define "canopy.databaseCaRef" -}}
{{- with .Values.database.ca -}}
name: {{ default (include "canopy.databaseSecret" $) .existingSecret }}
items: [{key: {{ ternary .key "ca.crt" (ne .existingSecret "") }}, path: ca.crt}]
{{- end -}}
{{- end -}}

{{- define "canopy.databaseUrl" -}}
{{- if .Values.database.trial.enabled -}}
{{- printf "postgres://canopy@%s-db.%s.svc:5432/canopy?sslmode=disable" (include "canopy.fullname" .) .Release.Namespace -}}
{{- else if include "canopy.hasDatabaseCa" . -}}
{{- printf "%s%ssslrootcert=/etc/canopy-database/ca.crt" .Values.database.url (ternary "&" "?" (contains "?" .Values.database.url)) -}}
{{- else -}}
{{- .Values.database.url -}}
{{- end -}}
{{- end -}}

{{/* What values can say that no server could do. */}}
{{- define "canopy.validate" -}}
{{- $database := include "canopy.hasDatabase" . -}}
{{- if and (not $database) (gt (int .Values.replicas) 1) -}}
{{- fail (printf "replicas is %d, and no database is configured: leases, faults and operations belong to one server without one. Set replicas: 1, or state database.url (for trying: database.trial.enabled: true)" (int .Values.replicas)) -}}
{{- end -}}
{{- if and (not $database) (include "canopy.isSplit" .) -}}
{{- fail "roles is split, and no database is configured: servers share work only through one. Set roles: all, or state database.url (for trying: database.trial.enabled: true)" -}}
{{- end -}}
{{- with .Values.database -}}
{{- if and .url .trial.enabled -}}
{{- fail "database.url and database.trial.enabled are both set. Leave one of them out" -}}
{{- end -}}
{{- if and $database (not (or .password.existingSecret .password.value)) -}}
{{- fail "a database is configured without a password. State database.password.existingSecret, or database.password.value" -}}
{{- end -}}
{{- if and (include "canopy.hasDatabaseCa" $) (contains "sslrootcert" .url) -}}
{{- fail "database.url names sslrootcert, and database.ca is set, too. Leave one of them out" -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls -}}
{{- $inline := or .certificate .key -}}
{{- $ways := list -}}
{{- if .existingSecret -}}{{- $ways = append $ways "tls.existingSecret" -}}{{- end -}}
{{- if $inline -}}{{- $ways = append $ways "tls.certificate" -}}{{- end -}}
{{- if .certManager.enabled -}}{{- $ways = append $ways "tls.certManager" -}}{{- end -}}
{{- if eq (len $ways) 0 -}}
{{- fail "the servers have no certificate. State tls.existingSecret (a secret with tls.crt and tls.key), tls.certificate and tls.key, or tls.certManager" -}}
{{- end -}}
{{- if gt (len $ways) 1 -}}
{{- fail (printf "%s are both set. Leave one of them out" (join " and " $ways)) -}}
{{- end -}}
{{- if and $inline (not (and .certificate .key)) -}}
{{- fail "tls.certificate and tls.key belong together. State both" -}}
{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager names no issuer. State tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.access.existingConfigMap (or .Values.access.rules .Values.access.files) -}}
{{- fail "access.existingConfigMap and access.rules are both set. Leave one of them out" -}}
{{- end -}}
{{- if and .Values.access.files (not .Values.access.rules) -}}
{{- fail "access.files is set without access.rules, which name the files. State access.rules" -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitor.enabled (not .Values.monitoring.serviceMonitor.token.existingSecret) -}}
{{- fail "/metrics needs a token of role viewer. State monitoring.serviceMonitor.token.existingSecret" -}}
{{- end -}}
{{- end -}}

{{/* canopyd.toml. `role` is all, api or worker. */}}
{{- define "canopy.config" -}}
{{- $root := .root -}}
{{- with $root.Values -}}
# CANOPY_DATA_DIR is a variable of the container, as the image has one.
{{- if ne $.role "worker" }}
listen = "0.0.0.0:7423"
{{- end }}
admin_listen = "0.0.0.0:7424"
tls_certificate = "/etc/canopy-tls/tls.crt"
tls_key = "/etc/canopy-tls/tls.key"
{{- if include "canopy.hasClientCa" $root }}
tls_client_ca = "/etc/canopy-clients/ca.crt"
{{- end }}
{{- if include "canopy.hasAccess" $root }}
access = "/etc/canopy-access/access.toml"
{{- end }}
{{- if include "canopy.hasTokens" $root }}
tokens = "/etc/canopy-tokens/tokens.json"
{{- end }}
{{- if .files.archiveSigners }}
archive_signers = "/etc/canopy/archive-signers"
{{- end }}
{{- if .files.familyRates }}
family_rates = "/etc/canopy/family-rates.yaml"
{{- end }}
{{- if include "canopy.hasDatabase" $root }}
database = {{ include "canopy.databaseUrl" $root | toRawJson }}
database_password_file = "/etc/canopy-database/password"
{{- if ne $.role "all" }}
role = {{ $.role | quote }}
{{- end }}
{{- end }}
drain_timeout = "{{ .drainSeconds }}s"
{{- range $key, $value := .config }}
{{- if kindIs "string" $value }}
{{ $key }} = {{ $value | toRawJson }}
{{- else if kindIs "slice" $value }}
{{ $key }} = {{ $value | toRawJson }}
{{- else if kindIs "bool" $value }}
{{ $key }} = {{ $value }}
{{- else }}
{{ $key }} = {{ int64 $value }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Data of the ConfigMap with it. */}}
{{- define "canopy.configData" -}}
canopyd.toml: |
  {{- include "canopy.config" . | nindent 2 }}
{{- with .root.Values.files }}
{{- with .familyRates }}
family-rates.yaml: |
  {{- . | nindent 2 }}
{{- end }}
{{- with .archiveSigners }}
archive-signers: |
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "canopy.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* So that the server reads the secrets, which others must not, its group is that of the volumes. */}}
{{- define "canopy.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Seconds before SIGTERM in which a server among others still answers. */}}
{{- define "canopy.preStop" -}}
{{- if and (include "canopy.hasDatabase" .root) (ne .role "worker") (semverCompare ">=1.30-0" .root.Capabilities.KubeVersion.Version) -}}
{{- int .root.Values.preStopSeconds -}}
{{- else -}}
0
{{- end -}}
{{- end -}}

{{/* Pods of a role. Takes root, role, component, config (a name), threads, resources, nodeSelector, tolerations, affinity. */}}
{{- define "canopy.podTemplate" -}}
{{- $root := .root -}}
{{- $database := include "canopy.hasDatabase" $root -}}
{{- $preStop := int (include "canopy.preStop" .) -}}
metadata:
  labels:
    {{- include "canopy.selectorLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    canopy/process: canopyd
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # New settings and a new password need a restart. Certificates, tokens and rules do not.
    checksum/config: {{ printf "%s%s" (include "canopy.configData" .) $root.Values.database.password.value | sha256sum }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "canopy.serviceAccountName" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  # The wait before SIGTERM, drain_timeout, and 15 s to write what is open.
  terminationGracePeriodSeconds: {{ add (int $root.Values.drainSeconds) $preStop 15 }}
  {{- if $database }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: {{ $root.Values.topologySpread.nodes }}
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "canopy.selectorLabels" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: {{ $root.Values.topologySpread.zones }}
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "canopy.selectorLabels" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
  {{- end }}
  securityContext:
    {{- include "canopy.podSecurity" $root | nindent 4 }}
  containers:
    - name: canopyd
      image: {{ include "canopy.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      env:
        - {name: CANOPY_CONFIG, value: /etc/canopy/canopyd.toml}
        - {name: CANOPY_DATA_DIR, value: /var/lib/canopy/data}
        {{- if ne .role "api" }}
        {{- if gt (int .threads) 0 }}
        - {name: CANOPY_WORKERS, value: {{ .threads | quote }}}
        {{- else if and (not (dig "limits" "cpu" "" .resources)) (dig "requests" "cpu" "" .resources) }}
        # Without a limit of processors, canopyd would see all of the node.
        - name: CANOPY_WORKERS
          valueFrom:
            resourceFieldRef: {containerName: canopyd, resource: requests.cpu, divisor: "1"}
        {{- end }}
        {{- end }}
        {{- with $root.Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- if ne .role "worker" }}
        - {name: grpc, containerPort: 7423}
        {{- end }}
        - {name: admin, containerPort: 7424}
      startupProbe:
        httpGet: {path: /healthz, port: admin, scheme: HTTPS}
        periodSeconds: 2
        failureThreshold: 60
      # 200 while a database is away: cached plans are served.
      readinessProbe:
        httpGet: {path: /readyz, port: admin, scheme: HTTPS}
        periodSeconds: 5
      livenessProbe:
        httpGet: {path: /healthz, port: admin, scheme: HTTPS}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- if gt $preStop 0 }}
      # Callers still come until all nodes know that this address is gone.
      lifecycle:
        preStop:
          sleep: {seconds: {{ $preStop }}}
      {{- end }}
      resources:
        {{- $resources := deepCopy .resources }}
        {{- if and $database (not (dig "requests" "ephemeral-storage" "" $resources)) }}
        {{- $_ := set $resources "requests" (merge (dict "ephemeral-storage" $root.Values.cache.size) (default dict $resources.requests)) }}
        {{- end }}
        {{- toYaml $resources | nindent 8 }}
      securityContext:
        {{- include "canopy.containerSecurity" $root | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/canopy}
        - {name: config, mountPath: /etc/canopy, readOnly: true}
        - {name: tls, mountPath: /etc/canopy-tls, readOnly: true}
        {{- if include "canopy.hasClientCa" $root }}
        - {name: clients, mountPath: /etc/canopy-clients, readOnly: true}
        {{- end }}
        {{- if include "canopy.hasAccess" $root }}
        - {name: access, mountPath: /etc/canopy-access, readOnly: true}
        {{- end }}
        {{- if include "canopy.hasTokens" $root }}
        - {name: tokens, mountPath: /etc/canopy-tokens, readOnly: true}
        {{- end }}
        {{- if $database }}
        - {name: database, mountPath: /etc/canopy-database, readOnly: true}
        {{- end }}
  volumes:
    {{- if $database }}
    # A cache of the database. The audit log and the key of archives go with it.
    - name: data
      emptyDir: {sizeLimit: {{ $root.Values.cache.size }}}
    {{- end }}
    - name: config
      configMap: {name: {{ .config }}}
    - name: tls
      secret:
        secretName: {{ include "canopy.tlsSecret" $root }}
        defaultMode: 0440
        items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
    {{- if include "canopy.hasClientCa" $root }}
    {{- with $root.Values.tls.clientCa }}
    - name: clients
      secret:
        secretName: {{ default (printf "%s-clients" (include "canopy.fullname" $root)) .existingSecret }}
        defaultMode: 0440
        items: [{key: {{ ternary .key "ca.crt" (ne .existingSecret "") }}, path: ca.crt}]
    {{- end }}
    {{- end }}
    {{- if include "canopy.hasAccess" $root }}
    - name: access
      configMap: {name: {{ default (printf "%s-access" (include "canopy.fullname" $root)) $root.Values.access.existingConfigMap }}}
    {{- end }}
    {{- if include "canopy.hasTokens" $root }}
    {{- with $root.Values.tokens }}
    - name: tokens
      secret:
        secretName: {{ default (printf "%s-tokens" (include "canopy.fullname" $root)) .existingSecret }}
        defaultMode: 0440
        items: [{key: {{ ternary .key "tokens.json" (ne .existingSecret "") }}, path: tokens.json}]
    {{- end }}
    {{- end }}
    {{- if $database }}
    - name: database
      projected:
        defaultMode: 0440
        sources:
          - secret:
              {{- include "canopy.passwordRef" $root | nindent 14 }}
          {{- if include "canopy.hasDatabaseCa" $root }}
          - secret:
              {{- include "canopy.databaseCaRef" $root | nindent 14 }}
          {{- end }}
    {{- end }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Role of the servers that answer callers. */}}
{{- define "canopy.serverRole" -}}
{{- if include "canopy.isSplit" . -}}api{{- else -}}all{{- end -}}
{{- end -}}
