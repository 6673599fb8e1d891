// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const databaseXRD = "apis/database/definition.yaml"

// database is a Database with these fields beside the four that it needs.
func database(t *testing.T, fields string) map[string]any {
	t.Helper()
	spec := map[string]any{"engine": "postgres", "version": "17", "replicas": int64(3), "storage": "50Gi"}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(fields), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	whole, ok := whole(values).(map[string]any)
	if !ok {
		t.Fatal("bad YAML in a test")
	}
	maps.Copy(spec, whole)
	return map[string]any{
		"apiVersion": "capstan.dev/v1alpha1", "kind": "Database",
		"metadata": map[string]any{"name": "orders-db", "namespace": "shop"}, "spec": spec,
	}
}

func TestDatabase(t *testing.T) {
	a := newAdmission(t, readXRD(t, databaseXRD))
	for name, tc := range map[string]struct{ reason, fields, want string }{
		"Nothing":         {reason: "Four fields are enough.", fields: `{}`},
		"Full":            {reason: "All of it together is fine.", fields: `{plan: small, availability: {spread: Nodes, profile: Fast, durability: Strict}, databases: [{name: orders}], consumers: [{name: api, database: orders, access: ReadOnly}], config: {work_mem: 64MB}, extensions: [uuid-ossp], network: {from: [{namespace: bi}, {cidr: 10.0.0.0/8}]}, tls: {issuerRef: {name: company}}}`},
		"Engine":          {reason: "Only what is implemented is taken.", fields: `{engine: oracle}`, want: "Unsupported value"},
		"MySQL":           {reason: "The same four fields are enough.", fields: `{engine: mysql, version: "9.7"}`},
		"MySQLLater":      {reason: "Series have two numbers, also those to come.", fields: `{engine: mysql, version: "28.4"}`},
		"MySQLNumber":     {reason: "Without quotes YAML makes a number of it.", fields: `{engine: mysql, version: 9.7}`, want: "spec.version: Invalid value"},
		"MySQLMajor":      {reason: "A version of another engine is none.", fields: `{engine: mysql, version: "17"}`, want: "must be a series of MySQL in quotes"},
		"MySQLMinor":      {reason: "Minor versions are the platform's.", fields: `{engine: mysql, version: "9.7.4"}`, want: "must be a series of MySQL in quotes"},
		"MySQLSchema":     {reason: "The server has databases of its own.", fields: `{engine: mysql, version: "9.7", databases: [{name: orders}, {name: sys}]}`, want: "which the server itself uses"},
		"MySQLLogin":      {reason: "The server has accounts of its own.", fields: `{engine: mysql, version: "9.7", consumers: [{name: root}]}`, want: "which the members use"},
		"MySQLMember":     {reason: "With _ instead of - it is the account of members.", fields: `{engine: mysql, version: "9.7", consumers: [{name: capstan-member}]}`, want: "which the members use"},
		"OtherSchema":     {reason: "Another engine has no database of this name.", fields: `{databases: [{name: sys}], consumers: [{name: root}]}`},
		"MinorVersion":    {reason: "Minor versions are the platform's.", fields: `{version: "17.6"}`, want: "must be a major version"},
		"ElevenMembers":   {reason: "There are ten letters.", fields: `{replicas: 11}`, want: "less than or equal to 10"},
		"TenInAGroup":     {reason: "A group of MySQL has nine members at most.", fields: `{engine: mysql, version: "9.7", replicas: 10}`, want: "must be at most 9: a group of MySQL has no more members"},
		"EndlessGrowth":   {reason: "Growth has a bound.", fields: `{storageGrowth: {}}`, want: "storageGrowth.max: Required"},
		"TinyGrowth":      {reason: "A bound is a size.", fields: `{storageGrowth: {max: much}}`, want: "storageGrowth.max"},
		"GrowthAtOnce":    {reason: "A volume that is nearly empty does not grow.", fields: `{storageGrowth: {max: 100Gi, whenFreePercent: 80}}`, want: "less than or equal to 50"},
		"GrowthBetween":   {reason: "Members tell in steps of 5.", fields: `{storageGrowth: {max: 100Gi, whenFreePercent: 12}}`, want: "multiple of 5"},
		"GrowthTooSmall":  {reason: "A step has to be seen by its size.", fields: `{storageGrowth: {max: 100Gi, byPercent: 5}}`, want: "greater than or equal to 20"},
		"TinyStorage":     {reason: "A server needs room.", fields: `{storage: 10Mi}`, want: "must be a quantity of at least 1Gi"},
		"TinyLog":         {reason: "A log needs room, too.", fields: `{walStorage: 100Mi}`, want: "must be a quantity of at least 1Gi"},
		"LogOfItsOwn":     {reason: "A volume for the log has a size of its own.", fields: `{walStorage: 20Gi}`},
		"PlanAndSize":     {reason: "A plan says all.", fields: `{plan: small, resources: {cpu: "1"}}`, want: "set plan or resources, not both"},
		"UnknownDatabase": {reason: "A consumer connects to what there is.", fields: `{consumers: [{name: api, database: x}]}`, want: "database must be one of spec.databases"},
		"ReservedLogin":   {reason: "Names of Capstan's own objects are taken.", fields: `{consumers: [{name: members}]}`, want: "must not be a name that Capstan uses itself"},
		"MemberLogin":     {reason: "Letters are members.", fields: `{consumers: [{name: j}]}`, want: "must not be a letter from a to j"},
		"ReservedName":    {reason: "The server has databases of its own.", fields: `{databases: [{name: template1}]}`, want: "must be lower case letters"},
		"ControlChar":     {reason: "A value is one line.", fields: `{config: {timezone: "a\nb"}}`, want: "must not have control characters"},
		"Pooler":          {reason: "Its defaults are enough.", fields: `{pooler: {}}`},
		"PoolerFull":      {reason: "All of it together is fine.", fields: `{pooler: {mode: Session, replicas: 3, poolSize: 10, maxClients: 5000, resources: {cpu: 200m, memory: 512Mi}}}`},
		"Logs":            {reason: "Lines of JSON.", fields: `{logs: {format: JSON}}`},
		"LogsFormat":      {reason: "There are two formats.", fields: `{logs: {format: logfmt}}`, want: "Unsupported value"},
		"Query":           {reason: "Metrics of an own query.", fields: `{monitoring: {queries: [{name: orders, sql: "select 1 as number", values: [number], labels: [state], intervalSeconds: 10}]}}`},
		"QueryName":       {reason: "It is part of the name of a metric.", fields: `{monitoring: {queries: [{name: my-orders, sql: s, values: [number]}]}}`, want: "must be lower case letters, digits and _"},
		"QueryColumn":     {reason: "So is a column.", fields: `{monitoring: {queries: [{name: orders, sql: s, values: [Number]}]}}`, want: "must be lower case letters, digits and _"},
		"QueryValues":     {reason: "A query without values has no metrics.", fields: `{monitoring: {queries: [{name: orders, sql: s, values: []}]}}`, want: "should have at least 1 items"},
		"QueryInterval":   {reason: "A query is no load test.", fields: `{monitoring: {queries: [{name: orders, sql: s, values: [number], intervalSeconds: 1}]}}`, want: "greater than or equal to 10"},
		"PoolerReaders":   {reason: "Readers have poolers of their own.", fields: `{pooler: {readOnly: true}}`},
		"PoolerMode":      {reason: "A statement alone is no mode.", fields: `{pooler: {mode: Statement}}`, want: "Unsupported value"},
		"NoPoolers":       {reason: "None are had by leaving the field out.", fields: `{pooler: {replicas: 0}}`, want: "greater than or equal to 1"},
		"PoolTooLarge":    {reason: "A server takes so many.", fields: `{pooler: {poolSize: 501}}`, want: "less than or equal to 500"},
		"FewClients":      {reason: "A pooler is for many.", fields: `{pooler: {maxClients: 1}}`, want: "greater than or equal to 10"},
		"PoolerMemory":    {reason: "It needs some.", fields: `{pooler: {resources: {memory: 1Mi}}}`, want: "must be a quantity of at least 64Mi"},
		"PoolerConsumer":  {reason: "Its Secrets have the name.", fields: `{consumers: [{name: pooler}]}`, want: "must not be a name that Capstan uses itself"},
		"Replication":     {reason: "Slots, publications and a consumer of them.", fields: `{databases: [{name: orders}], config: {wal_level: logical}, consumers: [{name: feed, replication: true}], replication: {slots: [{name: orders_cdc, database: orders, plugin: pgoutput}], publications: [{name: p, tables: [public.orders, "public.Item"]}, {name: q, allTables: true}]}}`},
		"ReplicationNone": {reason: "It is about something.", fields: `{replication: {}}`, want: "set slots or publications"},
		"SlotDatabase":    {reason: "A slot is for what there is.", fields: `{replication: {slots: [{name: cdc, database: x}]}}`, want: "database must be one of spec.databases"},
		"SlotOfMember":    {reason: "Members have slots of their own.", fields: `{replication: {slots: [{name: orders_db_j_0}]}}`, want: "not end like a slot of a member"},
		"SlotOfCapstan":   {reason: "So has Capstan.", fields: `{replication: {slots: [{name: capstan_x}]}}`, want: "not with capstan or pg_"},
		"SlotName":        {reason: "The server takes no others.", fields: `{replication: {slots: [{name: a-b}]}}`, want: "must be lower case letters"},
		"SlotPlugin":      {reason: "A plugin is a name.", fields: `{replication: {slots: [{name: cdc, plugin: "../x"}]}}`, want: "must be the name of a plugin"},
		"PublishNothing":  {reason: "Tables or all.", fields: `{replication: {publications: [{name: p}]}}`, want: "set tables, or allTables"},
		"PublishBoth":     {reason: "Not both.", fields: `{replication: {publications: [{name: p, tables: [a.b], allTables: true}]}}`, want: "set tables, or allTables"},
		"PublishTable":    {reason: "A table has a schema.", fields: `{replication: {publications: [{name: p, tables: [orders]}]}}`, want: "must be tables as SCHEMA.TABLE"},
		"PublishDatabase": {reason: "Tables are in what there is.", fields: `{replication: {publications: [{name: p, database: x, allTables: true}]}}`, want: "database must be one of spec.databases"},
		"Expose":          {reason: "Ranges are enough.", fields: `{expose: {sourceRanges: [203.0.113.0/24, "2001:db8::/32"]}}`},
		"ExposeToAll":     {reason: "The whole Internet has to be said.", fields: `{expose: {sourceRanges: [0.0.0.0/0], hostname: db.example.org}}`},
		"ExposeNobody":    {reason: "There is no default.", fields: `{expose: {}}`, want: "sourceRanges: Required value"},
		"ExposeEmpty":     {reason: "No range would be everybody to a load balancer.", fields: `{expose: {sourceRanges: []}}`, want: "should have at least 1 items"},
		"ExposeBits":      {reason: "Bits behind the range are a mistake.", fields: `{expose: {sourceRanges: [203.0.113.7/24]}}`, want: "must be a range of addresses with zero host bits"},
		"ExposeNoRange":   {reason: "A name is no range.", fields: `{expose: {sourceRanges: [example.org]}}`, want: "must be a range of addresses with zero host bits"},
		"ExposeHostname":  {reason: "A name outside has a dot.", fields: `{expose: {sourceRanges: [10.0.0.0/8], hostname: db}}`, want: "must be a DNS name with a dot in it"},
		"Maintenance":     {reason: "Windows, an approval and a freeze together are fine.", fields: `{maintenance: {windows: [{days: [Sat, Sun], start: "23:30", duration: 2h30m, timeZone: America/Argentina/Buenos_Aires}, {start: "02:00", duration: 15m}], approval: Manual, approve: c3f2a9c1b5d, freeze: {until: "2026-12-27T06:00:00Z"}}, switchover: {id: 2026-11-22-1, to: orders-db-b}, hibernated: true}`},
		"Rotation":        {reason: "Logins are rotated on schedule and by an id.", fields: `{credentials: {rotateEvery: 30d, overlap: 0s, id: 2026-11-22}, consumers: [{name: api, credentials: {rotateEvery: 12h, overlap: 90m}}]}`},
		"RotationUnit":    {reason: "A number alone says nothing.", fields: `{credentials: {rotateEvery: "30"}}`, want: "must be days or hours"},
		"RotationMinutes": {reason: "Clients have to read their Secret in between.", fields: `{consumers: [{name: api, credentials: {rotateEvery: 30m}}]}`, want: "must be days or hours"},
		"Overlap":         {reason: "Weeks are days, too.", fields: `{credentials: {rotateEvery: 30d, overlap: 1w}}`, want: "must be days, hours or minutes"},
		"RotationID":      {reason: "An id is a word.", fields: `{credentials: {id: "a b"}}`, want: "with a letter or digit at both ends"},
		"Hooks":           {reason: "SQL and HTTP around a change.", fields: `{maintenance: {hooks: {before: [{name: stop, timeout: 1h, onFailure: Continue, sql: {database: orders, statement: SELECT 1}}], after: [{name: tell, http: {url: "https://hooks.example.org:8443/x?y=z", method: PUT, expectedStatus: 204}}]}}}`},
		"HookNone":        {reason: "A hook does something.", fields: `{maintenance: {hooks: {before: [{name: stop}]}}}`, want: "set exactly one of sql and http"},
		"HookBoth":        {reason: "A hook does one thing.", fields: `{maintenance: {hooks: {before: [{name: stop, sql: {statement: SELECT 1}, http: {url: "http://a/"}}]}}}`, want: "set exactly one of sql and http"},
		"HookNoList":      {reason: "An empty list is none.", fields: `{maintenance: {hooks: {before: []}}}`, want: "should have at least 1 items"},
		"HookTwice":       {reason: "Each has a name of its own.", fields: `{maintenance: {hooks: {after: [{name: a, sql: {statement: SELECT 1}}, {name: a, sql: {statement: SELECT 2}}]}}}`, want: "Duplicate value"},
		"HookName":        {reason: "Names are words.", fields: `{maintenance: {hooks: {after: [{name: A, sql: {statement: SELECT 1}}]}}}`, want: "must be lower case letters"},
		"HookTimeout":     {reason: "A change does not wait for days.", fields: `{maintenance: {hooks: {after: [{name: a, timeout: 2h, sql: {statement: SELECT 1}}]}}}`, want: "must be from 1s to 1h"},
		"HookScheme":      {reason: "Two schemes are known.", fields: `{maintenance: {hooks: {after: [{name: a, http: {url: "ftp://a/"}}]}}}`, want: "must be an http or https URL without a user"},
		"HookUser":        {reason: "A password would be read by all.", fields: `{maintenance: {hooks: {after: [{name: a, http: {url: "http://a:b@c/"}}]}}}`, want: "must be an http or https URL without a user"},
		"HookMethod":      {reason: "Methods are five.", fields: `{maintenance: {hooks: {after: [{name: a, http: {url: "http://a/", method: HEAD}}]}}}`, want: "Unsupported value"},
		"HookStatus":      {reason: "A status has three digits.", fields: `{maintenance: {hooks: {after: [{name: a, http: {url: "http://a/", expectedStatus: 99}}]}}}`, want: "should be greater than or equal to 100"},
		"HookFailure":     {reason: "It stops or goes on.", fields: `{maintenance: {hooks: {after: [{name: a, onFailure: Rollback, http: {url: "http://a/"}}]}}}`, want: "Unsupported value"},
		"NoWindows":       {reason: "An empty list would mean any time or never.", fields: `{maintenance: {windows: []}}`, want: "should have at least 1 items"},
		"WindowTooShort":  {reason: "A member takes up to 10 minutes.", fields: `{maintenance: {windows: [{start: "02:00", duration: 14m}]}}`, want: "must be from 15m"},
		"WindowTooLong":   {reason: "A day has 24 hours.", fields: `{maintenance: {windows: [{start: "02:00", duration: 25h}]}}`, want: "must be from 15m"},
		"WindowStart":     {reason: "A day has 24 hours.", fields: `{maintenance: {windows: [{start: "24:00", duration: 1h}]}}`, want: "must be a time of day"},
		"WindowDay":       {reason: "Days are named in English.", fields: `{maintenance: {windows: [{days: [Sonntag], start: "02:00", duration: 1h}]}}`, want: "Unsupported value"},
		"WindowZone":      {reason: "Nobody knows where Local is.", fields: `{maintenance: {windows: [{start: "02:00", duration: 1h, timeZone: Local}]}}`, want: "must be the name of a time zone"},
		"WindowZonePath":  {reason: "A zone is no path of a file.", fields: `{maintenance: {windows: [{start: "02:00", duration: 1h, timeZone: ../../etc/passwd}]}}`, want: "must be the name of a time zone"},
		"Approval":        {reason: "Somebody approves or nobody.", fields: `{maintenance: {approval: Never}}`, want: "Unsupported value"},
		"Approve":         {reason: "A hash is what status.change tells.", fields: `{maintenance: {approval: Manual, approve: "yes please"}}`, want: "must be the value of status.change.hash"},
		"Freeze":          {reason: "A freeze ends at a time.", fields: `{maintenance: {freeze: {until: soon}}}`, want: "date-time"},
		"Restore":         {reason: "A moment, and how long the old data is kept.", fields: `{restore: {id: 2026-09-26-a, at: "2026-09-26T08:59:00Z", keepOldFor: 48h}}`},
		"RestoreLatest":   {reason: "The latest there is.", fields: `{restore: {id: "1"}}`},
		"RestoreNamed":    {reason: "A moment with a name.", fields: `{restore: {id: "1", restorePoint: 3f2a9c1b7d}}`},
		"Undo":            {reason: "The way back.", fields: `{restore: {undo: 2026-09-26-a}}`},
		"RestoreNothing":  {reason: "One of both is asked for.", fields: `{restore: {keepOldFor: 24h}}`, want: "exactly one of the fields in [id undo] must be set"},
		"RestoreBoth":     {reason: "Not both at once.", fields: `{restore: {id: a, undo: a}}`, want: "exactly one of the fields in [id undo] must be set"},
		"RestoreTwice":    {reason: "One moment.", fields: `{restore: {id: a, at: "2026-09-26T08:59:00Z", restorePoint: b}}`, want: "at most one of the fields in [at restorePoint] may be set"},
		"RestoreID":       {reason: "An id is short.", fields: `{restore: {id: "a b"}}`, want: "must be letters, digits, '-', '_' and '.'"},
		"UndoID":          {reason: "So is that of what is undone.", fields: `{restore: {undo: "-"}}`, want: "must be the id of a restore"},
		"UndoMoment":      {reason: "What is gone back to has no moment.", fields: `{restore: {undo: a, at: "2026-09-26T08:59:00Z"}}`, want: "must not be set with at or restorePoint"},
		"RestoreMoment":   {reason: "A moment has a zone.", fields: `{restore: {id: a, at: "2026-09-26 08:59"}}`, want: "must be a time with its zone"},
		"RestoreKept":     {reason: "Not for ever.", fields: `{restore: {id: a, keepOldFor: 1000h}}`, want: "must be from 1m to 720h"},
		"Upgrade":         {reason: "How long the former version is kept.", fields: `{upgrade: {keepOldFor: 48h}}`},
		"UpgradeRetry":    {reason: "Once more.", fields: `{upgrade: {retry: "2"}}`},
		"UpgradeWait":     {reason: "Commits on one member only are not wanted.", fields: `{upgrade: {wait: Standby}}`},
		"UpgradeWaits":    {reason: "For all standbys is another thing.", fields: `{upgrade: {wait: All}}`, want: "supported values: \"None\", \"Standby\""},
		"UpgradeUndo":     {reason: "The way back.", fields: `{upgrade: {undo: upgrade-15-17-2}}`},
		"UpgradeBoth":     {reason: "Back or once more.", fields: `{upgrade: {retry: "2", undo: upgrade-15-17}}`, want: "at most one of the fields in [retry undo] may be set"},
		"UpgradeWord":     {reason: "A word becomes a part of an id.", fields: `{upgrade: {retry: "a b"}}`, want: "must be letters, digits, '-', '_' and '.'"},
		"UpgradeID":       {reason: "Ids are those that are told.", fields: `{upgrade: {undo: before}}`, want: "must be the id of an upgrade"},
		"UpgradeKept":     {reason: "Not for ever.", fields: `{upgrade: {keepOldFor: 1000h}}`, want: "must be from 1m to 720h"},
		"Scheduling":      {reason: "Nodes, taints and priority.", fields: `{pod: {nodeSelector: {example.org/pool: databases}, tolerations: [{key: dedicated, value: databases, effect: NoSchedule}], priorityClassName: databases, runtimeClassName: kata}}`},
		"Affinity":        {reason: "Nodes by expressions, and pods of the namespace.", fields: `{pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.org/disk, operator: In, values: [nvme]}, {key: example.org/cores, operator: Gt, values: ["7"]}]}]}, preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}, podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {labelSelector: {matchLabels: {app: orders}}, topologyKey: topology.kubernetes.io/zone}}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [{key: app.kubernetes.io/name, operator: In, values: [postgres]}]}, topologyKey: kubernetes.io/hostname}]}}}}`},
		"AffinityOthers":  {reason: "Pods of other namespaces are not a tenant's to move.", fields: `{pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: x}}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}]}}}}`, want: "namespaceSelector"},
		"AffinityNamed":   {reason: "Nor by name.", fields: `{pod: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: x}}, namespaces: [kube-system], topologyKey: kubernetes.io/hostname}]}}}}`, want: "namespaces"},
		"AffinityAllPods": {reason: "It would keep every pod of the namespace away.", fields: `{pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}, topologyKey: kubernetes.io/hostname}]}}}}`, want: "set matchLabels or matchExpressions"},
		"AffinityNowhere": {reason: "Near is near by a label.", fields: `{pod: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: x}}}]}}}}`, want: "topologyKey: Required value"},
		"AffinityNoTerm":  {reason: "Conditions of which there is none are met by no node.", fields: `{pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}}`, want: "should have at least 1 items"},
		"AffinityIn":      {reason: "A label is in some values.", fields: `{pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}}}`, want: "operators In and NotIn need values"},
		"AffinityExists":  {reason: "It has no values.", fields: `{pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}}}}`, want: "take no values"},
		"AffinityGreater": {reason: "It is a number.", fields: `{pod: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [b]}]}]}}}}}`, want: "need one value, a whole number"},
		"AffinityWeight":  {reason: "As Kubernetes has it.", fields: `{pod: {affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}}}`, want: "greater than or equal to 1"},
		"AffinityKey":     {reason: "A key is a label.", fields: `{pod: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {"a b": x}}, topologyKey: "a b"}]}}}}`, want: "must be a label key"},
		"HugePages":       {reason: "Pages have a size by default.", fields: `{resources: {memory: 4Gi, hugePages: {amount: 8Gi}}}`},
		"HugePagesLarge":  {reason: "Larger ones are named.", fields: `{resources: {hugePages: {size: 1Gi, amount: 8Gi}}}`},
		"HugePagesSize":   {reason: "Linux has these two on the processors that members run on.", fields: `{resources: {hugePages: {size: 4Mi, amount: 8Gi}}}`, want: "Unsupported value"},
		"HugePagesPart":   {reason: "A page is not divided.", fields: `{resources: {hugePages: {size: 1Gi, amount: 1536Mi}}}`, want: "must be a whole number of pages"},
		"HugePagesFew":    {reason: "A server needs some.", fields: `{resources: {hugePages: {amount: 128Mi}}}`, want: "must be a quantity of at least 256Mi"},
		"HugePagesNone":   {reason: "It is about an amount.", fields: `{resources: {hugePages: {}}}`, want: "amount: Required value"},
		"TolerateNothing": {reason: "Without a key it is every taint, and says so.", fields: `{pod: {tolerations: [{value: databases}]}}`, want: "a toleration without key needs operator Exists"},
		"PodMetadata":     {reason: "A mesh and a bill read them.", fields: `{podMetadata: {labels: {example.org/team: orders}, annotations: {example.org/contact: "orders team"}}}`},
		"PodLabelOwn":     {reason: "Members are selected by it.", fields: `{podMetadata: {labels: {capstan.dev/role: leader}}}`, want: "keys must not begin with capstan.dev/"},
		"PodLabelName":    {reason: "So they are by this.", fields: `{podMetadata: {labels: {app.kubernetes.io/instance: other}}}`, want: "Capstan selects members by it"},
		"PodAnnotation":   {reason: "It would lift a restriction.", fields: `{podMetadata: {annotations: {container.apparmor.security.beta.kubernetes.io/postgres: unconfined}}}`, want: "they lift a restriction"},
		"Reinitialize":    {reason: "A member is copied again.", fields: `{reinitialize: {id: 2026-11-25-1, member: orders-db-b}}`},
		"Fence":           {reason: "A member is stopped.", fields: `{fence: {id: "1", member: orders-db-b}}`},
		"FenceAll":        {reason: "That is hibernation.", fields: `{fence: {id: "1", member: "*"}}`, want: "must be the name of a member"},
		"ReinitializeAll": {reason: "One at a time.", fields: `{reinitialize: {id: "1", member: "*"}}`, want: "must be the name of a member"},
		"SwitchoverID":    {reason: "A switchover is known by its id.", fields: `{switchover: {to: orders-db-b}}`, want: "switchover.id: Required value"},
		"OwnSwitchover":   {reason: "Capstan has ids of its own.", fields: `{switchover: {id: capstan-1}}`, want: "must not start with capstan-"},
		"CIDRAndPods":     {reason: "A range has no pods.", fields: `{network: {from: [{cidr: 10.0.0.0/8, namespace: bi}]}}`, want: "set cidr, or namespace and podLabels"},
		"Backup":          {reason: "The shortest is fine.", fields: `{backup: {enabled: true, schedule: "0 */6 * * *", retention: 30d}}`},
		"BackupAll":       {reason: "All of it together is fine.", fields: `{backup: {schedule: "5 1 * * MON-FRI", retention: "14", to: {connectionSecretRef: {name: backups}}, onDelete: Delete, onExisting: StartEmpty, now: before-7, maxArchiveBacklog: 5Gi}}`},
		"BackupNothing":   {reason: "All of it has a default.", fields: `{backup: {}}`},
		"BackupKey":       {reason: "A key is a Secret's.", fields: `{backup: {encryption: {secretRef: {name: orders-backup-key}}}}`},
		"BackupKeyNamed":  {reason: "It may be called as it likes.", fields: `{backup: {encryption: {secretRef: {name: vault, key: orders.KEY}}}}`},
		"BackupKeyNone":   {reason: "Encryption needs a key.", fields: `{backup: {encryption: {}}}`, want: "secretRef: Required value"},
		"BackupKeySecret": {reason: "A Secret has a name.", fields: `{backup: {encryption: {secretRef: {name: A_B}}}}`, want: "must be the name of a Secret"},
		"BackupKeyPath":   {reason: "A key is no path.", fields: `{backup: {encryption: {secretRef: {name: vault, key: "../x"}}}}`, want: "must be a key of a Secret"},
		"BackupKeyItself": {reason: "The key is in no manifest.", fields: `{backup: {encryption: {passphrase: hunter2}}}`, want: "passphrase"},
		"BackupCron":      {reason: "A schedule has five fields.", fields: `{backup: {schedule: "@daily"}}`, want: "must have five fields"},
		"BackupSeconds":   {reason: "A schedule has no seconds.", fields: `{backup: {schedule: "0 0 1 * * *"}}`, want: "must have five fields"},
		"BackupNone":      {reason: "A retention of nothing keeps nothing.", fields: `{backup: {retention: 0d}}`, want: "must be days such as 30d"},
		"BackupWeeks":     {reason: "Weeks are days.", fields: `{backup: {retention: 4w}}`, want: "must be days such as 30d"},
		"BackupTo":        {reason: "A place is one or the other.", fields: `{backup: {to: {}}}`, want: "exactly one of the fields in [connectionSecretRef volume] must be set"},
		"BackupToBoth":    {reason: "Backups go to one place.", fields: `{backup: {to: {connectionSecretRef: {name: backups}, volume: {}}}}`, want: "exactly one of the fields in [connectionSecretRef volume] must be set"},
		"BackupVolume":    {reason: "All of it has a default.", fields: `{backup: {to: {volume: {}}}}`},
		"BackupVolumeAll": {reason: "All of it together is fine.", fields: `{backup: {to: {volume: {size: 150Gi, storageClassName: fast.ssd}}}}`},
		"BackupVolumeLow": {reason: "A volume has room for something.", fields: `{backup: {to: {volume: {size: 10Mi}}}}`, want: "at least 1Gi"},
		"BackupVolumeNo":  {reason: "A size is a quantity.", fields: `{backup: {to: {volume: {size: much}}}}`, want: "must be a quantity of at least 1Gi"},
		"BackupClass":     {reason: "A class is an object's name.", fields: `{backup: {to: {volume: {storageClassName: "Fast SSD"}}}}`, want: "must be the name of a StorageClass"},
		"BackupNow":       {reason: "An id becomes a name.", fields: `{backup: {now: "a b"}}`, want: "must be letters, digits"},
		"BackupBacklog":   {reason: "Less than a few segments is no room.", fields: `{backup: {maxArchiveBacklog: 1Mi}}`, want: "at least 128Mi"},
		"BackupDeletion":  {reason: "There is no third way.", fields: `{backup: {onDelete: Maybe}}`, want: "Unsupported value"},
		"BackupExisting":  {reason: "There is no third way.", fields: `{backup: {onExisting: Overwrite}}`, want: "Unsupported value"},
		"Verify":          {reason: "All of it has a default.", fields: `{backup: {verify: {}}}`},
		"VerifyAll":       {reason: "All of it together is fine.", fields: `{backup: {verify: {schedule: "0 3 * * SUN", maxRestoreTime: 45m, now: after-7, assertions: [{database: orders_db, sql: "select count(*) > 0 from orders"}]}, restorePoint: 3f2a9c1b7d0a4e5f60718293a4b5c6d7e8f90123}}`},
		"VerifyCron":      {reason: "A schedule has five fields.", fields: `{backup: {verify: {schedule: "@weekly"}}}`, want: "must have five fields"},
		"VerifyNow":       {reason: "An id becomes a name.", fields: `{backup: {verify: {now: "a b"}}}`, want: "must be letters, digits"},
		"VerifyNever":     {reason: "No restore takes no time.", fields: `{backup: {verify: {maxRestoreTime: 0s}}}`, want: "must be a time between 1s and 11h"},
		"VerifyLong":      {reason: "A verification ends.", fields: `{backup: {verify: {maxRestoreTime: 12h}}}`, want: "must be a time between 1s and 11h"},
		"VerifyNothing":   {reason: "An assertion asks something.", fields: `{backup: {verify: {assertions: [{database: orders_db, sql: ""}]}}}`, want: "should be at least 1 chars long"},
		"VerifyNobody":    {reason: "An assertion asks somebody.", fields: `{backup: {verify: {assertions: [{sql: select true}]}}}`, want: "database: Required value"},
		"RestorePoint":    {reason: "A name becomes a label.", fields: `{backup: {restorePoint: "v1 final"}}`, want: "must be letters, digits"},
		"RestorePointAs":  {reason: "A label has an end.", fields: `{backup: {restorePoint: ` + strings.Repeat("a", 46) + `}}`, want: "Too long"},
		"Mask":            {reason: "A copy may be masked.", fields: `{from: {database: {name: other-db}, mask: [{database: orders_db, sql: "delete from people"}]}}`},
		"MaskNothing":     {reason: "A mask has statements.", fields: `{from: {database: {name: other-db}, mask: []}}`, want: "at least 1 items"},
		"MaskNobody":      {reason: "A statement runs in a database.", fields: `{from: {database: {name: other-db}, mask: [{sql: x}]}}`, want: "database: Required value"},
		"MaskName":        {reason: "A database has a name.", fields: `{from: {database: {name: other-db}, mask: [{database: "a b", sql: x}]}}`, want: "must be the name of a database"},
		"MaskEmpty":       {reason: "A statement says something.", fields: `{from: {database: {name: other-db}, mask: [{database: d, sql: ""}]}}`, want: "should be at least 1 chars long"},
		"MaskServer":      {reason: "Rows that follow later would not be masked.", fields: `{from: {server: {host: h, credentialsSecretRef: {name: s}}, mask: [{database: d, sql: x}]}}`, want: "must not be set with server"},
		"MaskFollow":      {reason: "A standby has the data of its primary.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, follow: true}, mask: [{database: d, sql: x}]}}`, want: "must not be set with backup.follow"},
		"FromPoint":       {reason: "A copy to a name is fine.", fields: `{from: {database: {name: other-db, restorePoint: v1}}}`},
		"FromPointBackup": {reason: "Also of a Database that is gone.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, restorePoint: v1}}}`},
		"FromTwoMoments":  {reason: "There is one moment.", fields: `{from: {database: {name: b, restorePoint: v1, at: "2026-11-21T08:59:00Z"}}}`, want: "at most one of the fields"},
		"FromTwoOfBackup": {reason: "There is one moment.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, restorePoint: v1, at: "2026-11-21T08:59:00Z"}}}`, want: "at most one of the fields"},
		"FromDatabase":    {reason: "A copy to the second is fine.", fields: `{from: {database: {name: other-db, at: "2026-11-21T08:59:00Z"}}}`},
		"FromBackup":      {reason: "So is a backup with all that names it.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: other-db, namespace: gone, stanza: other-db-3f2a9c1b-17, at: "2026-11-21T08:59:00.123456+01:00"}}}`},
		"FromServer":      {reason: "A server is a source.", fields: `{databases: [{name: app}], from: {server: {host: legacy.example, port: 5433, credentialsSecretRef: {name: old}, tls: Require, databases: [{name: app, source: Old-App}], skip: [LargeObjects]}}, cutOver: {id: a, stopWrites: true}}`},
		"FromServerIPv6":  {reason: "An address is fine, too.", fields: `{from: {server: {host: "fd00::1", credentialsSecretRef: {name: old}}}}`},
		"FromSocket":      {reason: "A socket would be the member's own, with all rights.", fields: `{from: {server: {host: /run/postgresql, credentialsSecretRef: {name: old}}}}`, want: "must be the name or the address of a server"},
		"FromTwoServers":  {reason: "A list of hosts is several servers.", fields: `{from: {server: {host: "a,b", credentialsSecretRef: {name: old}}}}`, want: "must be the name or the address of a server"},
		"FromServerTLS":   {reason: "The choices are named.", fields: `{from: {server: {host: a, credentialsSecretRef: {name: old}, tls: prefer}}}`, want: `supported values: "VerifyFull", "VerifyCA", "Require", "Disable"`},
		"FromServerSkip":  {reason: "The choices are named.", fields: `{from: {server: {host: a, credentialsSecretRef: {name: old}, skip: [Tables]}}}`, want: `supported values: "LargeObjects", "UnloggedTables"`},
		"FromServerBoth":  {reason: "A source is one thing.", fields: `{from: {database: {name: b}, server: {host: a, credentialsSecretRef: {name: old}}}}`, want: "exactly one of the fields"},
		"CutOverSpace":    {reason: "An id is one word.", fields: `{cutOver: {id: "a b"}}`, want: "must be letters, digits"},
		"FromNothing":     {reason: "A source is one thing.", fields: `{from: {}}`, want: "exactly one of the fields"},
		"FromKeys":        {reason: "An encrypted source has its key.", fields: `{from: {database: {name: b, encryption: {secretRef: {name: vault}}}}}`},
		"FromKeyNone":     {reason: "A key is a Secret's.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, encryption: {}}}}`, want: "secretRef: Required value"},
		"FromBoth":        {reason: "A source is one thing.", fields: `{from: {database: {name: b}, backup: {connectionSecretRef: {name: old}, database: b}}}`, want: "exactly one of the fields"},
		"FromNoZone":      {reason: "A time without a zone is no moment.", fields: `{from: {database: {name: b, at: "2026-11-21T08:59:00"}}}`, want: "must be a time with its zone"},
		"FromStranger":    {reason: "Names are those of Databases.", fields: `{from: {database: {name: "../b"}}}`, want: "must be the name of a Database"},
		"FromNamespace":   {reason: "A namespace becomes a part of a path.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, namespace: "a/b"}}}`, want: "must be the name of a namespace"},
		"FromStanza":      {reason: "A stanza becomes a part of a path.", fields: `{from: {backup: {connectionSecretRef: {name: old}, database: b, stanza: "../x"}}}`, want: "must be lower case letters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := a.create(t, database(t, tc.fields))
			got := strings.Join(errs, "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nwant %q, got:\n%s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestDatabaseChanges(t *testing.T) {
	a := newAdmission(t, readXRD(t, databaseXRD))
	for name, tc := range map[string]struct{ reason, before, after, want string }{
		"Grow":      {reason: "More storage may be asked for.", before: `{}`, after: `{storage: 80Gi}`},
		"Shrink":    {reason: "Data does not shrink.", before: `{}`, after: `{storage: 10Gi}`, want: "cannot shrink"},
		"ShrinkLog": {reason: "Neither does a volume for the log.", before: `{walStorage: 20Gi}`, after: `{walStorage: 10Gi}`, want: "cannot shrink"},
		"RemoveLog": {reason: "Data needs its log.", before: `{walStorage: 20Gi}`, after: `{}`, want: "spec.walStorage: Invalid value: cannot be removed"},
		"AddLog":    {reason: "A running Database may get it.", before: `{}`, after: `{walStorage: 20Gi}`},

		"BackupOff":   {reason: "Backups are switched on and off.", before: `{backup: {enabled: true}}`, after: `{backup: {enabled: false}}`},
		"VolumeGrows": {reason: "More may be asked for.", before: `{backup: {to: {volume: {size: 10Gi}}}}`, after: `{backup: {to: {volume: {size: 20Gi}}}}`},
		"VolumeSize":  {reason: "Backups do not shrink.", before: `{backup: {to: {volume: {size: 20Gi}}}}`, after: `{backup: {to: {volume: {size: 10Gi}}}}`, want: "cannot shrink: set the previous size or a larger one"},
		"VolumeClass": {reason: "A volume stays in its class.", before: `{backup: {to: {volume: {storageClassName: a}}}}`, after: `{backup: {to: {volume: {storageClassName: b}}}}`, want: "a volume stays in its class"},
		"ClassAdded":  {reason: "Nor is it given one.", before: `{backup: {to: {volume: {}}}}`, after: `{backup: {to: {volume: {storageClassName: b}}}}`, want: "a volume stays in its class"},
		"Moved":       {reason: "Backups may be moved.", before: `{backup: {to: {volume: {}}}}`, after: `{backup: {to: {connectionSecretRef: {name: own}}}}`},
		"KeyFirst":    {reason: "Backups begin with a key.", before: `{}`, after: `{backup: {encryption: {secretRef: {name: vault}}}}`},
		"KeyMoved":    {reason: "Another Secret may have the same value.", before: `{backup: {encryption: {secretRef: {name: vault}}}}`, after: `{backup: {encryption: {secretRef: {name: safe, key: k}}}}`},
		"KeyAdded":    {reason: "What there is stays plain.", before: `{backup: {}}`, after: `{backup: {encryption: {secretRef: {name: vault}}}}`, want: "cannot be added or removed"},
		"KeyRemoved":  {reason: "What there is stays encrypted.", before: `{backup: {encryption: {secretRef: {name: vault}}}}`, after: `{backup: {}}`, want: "cannot be added or removed"},
		"FromAdded":   {reason: "A Database begins once.", before: `{}`, after: `{from: {database: {name: b}}}`, want: "it is used only when a Database is created"},
		"FromRemoved": {reason: "A Database begins once.", before: `{from: {database: {name: b}}}`, after: `{}`, want: "it is used only when a Database is created"},
		"FromMoved":   {reason: "A Database begins once.", before: `{from: {database: {name: b}}}`, after: `{from: {database: {name: b, at: "2026-11-21T08:59:00Z"}}}`, want: "it is used only when a Database is created"},
		"LogicalKept": {reason: "All else goes on changing.", before: `{config: {wal_level: logical}}`, after: `{config: {wal_level: LOGICAL, work_mem: 8MB}}`},
		"LogicalGone": {reason: "A server with slots would not start.", before: `{config: {wal_level: logical}}`, after: `{}`, want: "wal_level cannot change from logical"},
		"LogicalBack": {reason: "A server with slots would not start.", before: `{config: {wal_level: logical}}`, after: `{config: {wal_level: replica}}`, want: "wal_level cannot change from logical"},
		"FromKept":    {reason: "All else goes on changing.", before: `{from: {database: {name: b}}}`, after: `{from: {database: {name: b}}, replicas: 5}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(a.update(t, database(t, tc.before), database(t, tc.after)), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nwant %q, got:\n%s", tc.reason, tc.want, got)
			}
		})
	}
}
