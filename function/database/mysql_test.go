// SPDX-License-Identifier: Apache-2.0

package database

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/names"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

const (
	group    = `{engine: mysql, version: "9.7", replicas: 3, storage: 50Gi}`
	groupOf2 = `{engine: mysql, version: "9.7", replicas: 2, storage: 50Gi}`
	groupOf1 = `{engine: mysql, version: "9.7", replicas: 1, storage: 50Gi}`
)

// groupImport is a Database that is filled from a server, with room for a field of that.
const groupImport = `{engine: mysql, version: "9.7", replicas: 3, storage: 50Gi, databases: [{name: orders}], from: {server: {host: legacy.example, credentialsSecretRef: {name: legacy}, %s}}}`

// with fields beside those of a spec.
func with(spec, fields string) string { return strings.TrimSuffix(spec, "}") + ", " + fields + "}" }

// TestGroup: a Database of the other engine has the same objects, with that engine's account, ports and image.
func TestGroup(t *testing.T) {
	w := running(t, group)
	p := w.plan()
	if diff := cmp.Diff(compose.SortedKeys(running(t, basic).plan().Objects), compose.SortedKeys(p.Objects)); diff != "" {
		t.Errorf("objects: -of PostgreSQL, +got:\n%s", diff)
	}
	for _, c := range p.Conditions {
		if c.Status != "True" {
			t.Errorf("condition %s is %s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	if st := told(t, p); st.Phase != v1alpha1.DatabaseRunning || !p.Ready || st.Endpoints.ReadWrite != "orders-db-rw.shop.svc:3306" {
		t.Errorf("phase %s, ready %t, endpoints %+v", st.Phase, p.Ready, st.Endpoints)
	}
	for resource, wants := range map[string][]string{
		"member-a": {
			`"image":"ghcr.io/capstan-dev/mysql:v1"`, `"name":"mysql"`, `{"containerPort":8010,"name":"peers","protocol":"TCP"}`,
			`{"containerPort":33062,"name":"members","protocol":"TCP"}`, `"runAsUser":999`, `"--mysqld.address=unix:///run/mysqld/mysqld.sock"`, `"runAsUser":998`,
		},
		"rolebinding":       {`"name":"capstan:mysql-member"`},
		"access":            {`"engine":"mysql"`, `"port":3306`, `"username":"capstan"`},
		"access-credential": {`"format":"CachingSHA2"`},
		"consumer-app":      {`"type":"mysql"`, `"sslMode":"VERIFY_IDENTITY"`, `"ssl-mode":"VERIFY_IDENTITY"`},
		"networkpolicy":     {`{"ports":[{"protocol":"TCP","port":8010}],"from":[{"podSelector":{"matchLabels":{"capstan.dev/database":"orders-db"}}}]}`},
		"config":            {`\"generation\":1,\"domain\":\"orders-db-pods.shop.svc\",\"volumes\":[]`, `[mysqld]`},
		"rules":             {"mysql_global_variables_super_read_only"},
	} {
		text := encodedObject(t, p, resource)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", resource, want, text)
			}
		}
	}
}

// TestGroupReplicators gives members both logins of a consumer of changes, whose Secret points to the leader, and restarts none.
func TestGroupReplicators(t *testing.T) {
	w := running(t, group)
	before := w.revisions()
	w.edit(with(group, `consumers: [{name: api}, {name: feed-x, access: ReadOnly, replication: true}]`))
	p := w.pass()
	if text := encodedObject(t, p, "config"); !strings.Contains(text, `\"replicators\":[\"feed_x\",\"feed_x-b\"]`) {
		t.Errorf("members do not know who reads: %s", text)
	}
	if text := encodedObject(t, p, "consumer-feed-x"); !strings.Contains(text, `"host":"orders-db-rw.shop.svc"`) {
		t.Errorf("the Secret does not point to the leader: %s", text)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("it restarts members: -before, +after:\n%s", diff)
	}
}

// TestGroupImport: members know the source, at the port of its engine, and have its Secret. Nobody logs in before the cut-over.
func TestGroupImport(t *testing.T) {
	w := running(t, fmt.Sprintf(groupImport, `skip: [StoredObjects]`))
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportFollowing, Copied: 100, GapSeconds: 15, Message: "changes are applied"}
	w.react()
	p := w.pass()
	want := `"import":{"host":"legacy.example","port":3306,"tls":"VERIFY_IDENTITY","databases":[{"name":"orders","source":"orders"}],"skip":["StoredObjects"]}`
	if file := compose.Text(w.request.Observed[names.Config].Map(), "data", fileMember); !strings.Contains(file, want) {
		t.Errorf("members do not know the source: %s", file)
	}
	if text := encodedObject(t, p, "member-a"); !strings.Contains(text, `{"mountPath":"/etc/capstan/import","name":"import","readOnly":true}`) || !strings.Contains(text, `"secretName":"legacy"`) {
		t.Errorf("a member has no Secret of the source: %s", text)
	}
	if status, reason, message := condition(p, "Imported"); status != "False" || reason != "ImportFollowing" {
		t.Errorf("Imported is %s %s: %s", status, reason, message)
	}
	if got := w.logins(); len(got) > 0 || p.Ready {
		t.Errorf("it is ready: %t, with the logins %v", p.Ready, got)
	}
	w.imports = &observev1alpha1.ImportReport{State: observev1alpha1.ImportCutOver, CutOver: "go"}
	w.react()
	for range 3 {
		p = w.pass()
	}
	if status, _, message := condition(p, "Imported"); status != "True" || len(w.logins()) == 0 {
		t.Errorf("Imported is %s (%s), with the logins %v", status, message, w.logins())
	}
	hasEnded(t, w)
}

// TestGroupFence gives members the request to stop one, restarts none, and says what became of it.
func TestGroupFence(t *testing.T) {
	w := running(t, group)
	before := w.revisions()
	w.edit(with(group, `fence: {id: "1", member: orders-db-b}`))
	p := w.pass()
	if text := encodedObject(t, p, "config"); !strings.Contains(text, `\"fence\":{\"id\":\"1\",\"member\":\"orders-db-b\"}`) {
		t.Errorf("members have no request: %s", text)
	}
	if diff := cmp.Diff(before, w.revisions()); diff != "" {
		t.Errorf("a request restarts members: -before, +after:\n%s", diff)
	}
	w.broken["orders-db-b"] = members.ReasonStopped
	w.fences = map[string]*observev1alpha1.MemberFenceReport{"orders-db-b": {ID: "1", Outcome: members.FenceStopped}}
	w.pass()
	if diff := cmp.Diff(&v1alpha1.FenceStatus{ID: "1", Member: "orders-db-b", Outcome: members.FenceStopped}, told(t, w.pass()).Fence); diff != "" {
		t.Error(diff)
	}
}

// TestGroupRefuses what the engine does not have, before anything is composed, with an alternative.
func TestGroupRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ spec, reason, message string }{
		"Promote":      {with(group, `promote: {id: a}`), "UnsupportedByEngine", "spec.promote: members of MySQL do not follow"},
		"Follow":       {with(group, `from: {backup: {connectionSecretRef: {name: old}, database: old, follow: true}}`), "UnsupportedByEngine", "spec.from.backup.follow: true: "},
		"Dump":         {with(group, `from: {dump: {connectionSecretRef: {name: dumps}, databases: [{name: orders, path: orders.sql}]}}`), "UnsupportedByEngine", "spec.from.dump: members of MySQL restore no dumps yet"},
		"Unverified":   {fmt.Sprintf(groupImport, `tls: Require`), "InvalidSpec", `spec.from.server.tls: "Require": a login of this engine shows its password`},
		"Skip":         {fmt.Sprintf(groupImport, `skip: [LargeObjects]`), "InvalidSpec", `spec.from.server.skip[0]: "LargeObjects": servers of this engine have none`},
		"Renamed":      {fmt.Sprintf(groupImport, `databases: [{name: orders, source: old}]`), "InvalidSpec", `spec.from.server.databases[0].source: "old": statements in the log`},
		"ImportLogin":  {with(fmt.Sprintf(groupImport, `skip: []`), `consumers: [{name: capstan-import}]`), "InvalidSpec", "which the members use"},
		"Upgrade":      {with(group, `upgrade: {retry: a}`), "VersionChangeUnsupported", "spec.upgrade: "},
		"Pooler":       {with(group, `pooler: {}`), "UnsupportedByEngine", "spec.pooler: Capstan has no poolers for MySQL yet"},
		"Extension":    {with(group, `extensions: [pg_trgm]`), "UnsupportedByEngine", "spec.extensions: "},
		"Slots":        {with(group, `replication: {slots: [{name: cdc}]}`), "UnsupportedByEngine", "spec.replication: "},
		"Strict":       {with(group, `availability: {durability: Strict}`), "UnsupportedByEngine", `spec.availability.durability: "Strict": a group of MySQL acknowledges`},
		"Asynchronous": {with(group, `availability: {durability: Asynchronous}`), "UnsupportedByEngine", `spec.availability.durability: "Asynchronous": `},
		"Version":      {strings.Replace(group, "9.7", "8.4", 1), "VersionUnavailable", `spec.version: "8.4": the platform has no image of this version: choose one of 9.7,`},
		"OldVersion":   {strings.Replace(group, "9.7", "8.0", 1), "VersionUnavailable", "choose one of 9.7,"},
		"Form":         {strings.Replace(group, "9.7", "17", 1), "InvalidSpec", `must be a series of MySQL in quotes`},
		"Database":     {with(group, `databases: [{name: sys}]`), "InvalidSpec", "which the server itself uses"},
		"Consumer":     {with(group, `consumers: [{name: root}]`), "InvalidSpec", "which the members use"},
		"Parameter":    {with(group, `config: {gtid_mode: "OFF"}`), "InvalidSpec", "spec.config.gtid_mode: "},
		"Members":      {strings.Replace(group, "replicas: 3", "replicas: 10", 1), "InvalidSpec", "must be at most 9: a group of MySQL has no more members"},
		"Memory":       {with(group, `resources: {memory: 512Mi}`), "InvalidSpec", `spec.resources.memory: "512Mi": with 100 connections the server needs at least 768Mi of memory: raise it`},
		"Connections":  {with(group, `config: {max_connections: "1000"}`), "InvalidSpec", `spec.plan: "default": its members have 1Gi, and with 1000 connections the server needs at least 1716Mi`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			p := w.pass()
			if _, reason, message := condition(p, "Accepted"); reason != tc.reason || !strings.Contains(message, tc.message) {
				t.Errorf("Accepted: %s: %s", reason, message)
			}
			if len(p.Objects) > 0 {
				t.Errorf("objects are composed: %v", compose.SortedKeys(p.Objects))
			}
			if strings.Contains(tc.spec, "from:") {
				return // It is only read when a Database is created.
			}
			before := running(t, group)
			observed := before.request.Observed
			before.edit(tc.spec)
			p = before.pass()
			if status, _, message := condition(p, "Accepted"); status != "False" {
				t.Errorf("a group that runs accepts it: %s", message)
			}
			for name, o := range observed {
				if diff := cmp.Diff(o.Map()["spec"], before.request.Observed[name].Map()["spec"]); diff != "" {
					t.Errorf("%s changes: -before, +after:\n%s", name, diff)
				}
			}
		})
	}
}

// TestGroupStaysInItsSeries: a later series in an image of the platform is one for another Database.
func TestGroupStaysInItsSeries(t *testing.T) {
	w := running(t, group)
	w.request.Settings.Database.Images = []inputv1alpha1.DatabaseImage{{
		Image: "ghcr.io/capstan-dev/mysql", Engine: v1alpha1.EngineMySQL, Versions: []inputv1alpha1.DatabaseVersion{{Version: "9.7"}, {Version: "28.4"}},
	}}
	w.edit(strings.Replace(group, "9.7", "28.4", 1))
	p := w.pass()
	if _, reason, message := condition(p, "Accepted"); reason != "VersionChangeUnsupported" || !strings.Contains(message, `spec.version: "28.4": Capstan does not bring data of MySQL to another series yet`) {
		t.Errorf("Accepted: %s: %s", reason, message)
	}
	w.edit(group)
	if status, _, message := condition(w.pass(), "Accepted"); status != "True" {
		t.Errorf("with its own series again: %s", message)
	}
}

// TestImagesOfEngines: an image of one engine takes nothing from another.
func TestImagesOfEngines(t *testing.T) {
	own := []inputv1alpha1.DatabaseImage{{Image: "registry.example.org/pg", Versions: []inputv1alpha1.DatabaseVersion{{Version: "16"}}}}
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Own":   {"An image without an engine has the default one.", strings.Replace(basic, "17", "16", 1), `"image":"registry.example.org/pg:v1"`},
		"Other": {"An engine that no image has is in ours.", group, `"image":"ghcr.io/capstan-dev/mysql:v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.spec)
			w.request.Settings.Database.Images = own
			for range 4 {
				w.pass()
			}
			if text := encodedObject(t, w.plan(), "member-a"); !strings.Contains(text, tc.want) {
				t.Errorf("\n%s\nthe member lacks %s: %s", tc.reason, tc.want, text)
			}
		})
	}
}

// TestMajority: what a group survives follows from its majority.
func TestMajority(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec   string
		broken         []string
		status, want   string
		message        string
		risks, survive []string
	}{
		"Three": {
			reason: "Two of three are a majority.", spec: group, status: "True", want: "StandbyInSync", survive: []string{"member", "node", "zone"},
		},
		"Two": {
			reason: "One of two is none.", spec: groupOf2, status: "False", want: "TooFewMembers", message: "raise spec.replicas to 3",
			risks: []string{"the loss of member orders-db-a stops writes until it is back, because the members that are left are no majority"},
		},
		"One": {
			reason: "A single member has no other.", spec: groupOf1, status: "False", want: "SingleMember", message: "raise spec.replicas to 3 or more",
			risks: []string{"the loss of member orders-db-a stops writes until it is back, because no other member could become the leader"},
		},
		"TwoOfThree": {
			reason: "The group expels the one that is lost, and is one of two.", spec: group, broken: []string{"orders-db-c"}, status: "False", want: "TooFewMembers",
			message: "members are missing: orders-db-c",
			risks:   []string{"the loss of member orders-db-a stops writes until it is back, because the members that are left are no majority"},
		},
		"Four": {
			reason: "The fourth costs a volume, and the group survives no more.", spec: strings.Replace(group, "replicas: 3", "replicas: 4", 1), status: "True", want: "StandbyInSync",
			message: "; 4 members survive the loss of 1, as 3 do: an odd number is the better choice", survive: []string{"member", "node", "zone"},
		},
		"FourOfFive": {
			reason: "Three of four are a majority.", spec: strings.Replace(group, "replicas: 3", "replicas: 5", 1), broken: []string{"orders-db-e"}, status: "True",
			want: "MembersMissing", survive: []string{"member", "node", "zone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, tc.spec)
			for _, m := range tc.broken {
				w.broken[m] = "CrashLooping"
			}
			w.pass()
			p := w.plan()
			if status, reason, message := condition(p, "HighlyAvailable"); status != tc.status || reason != tc.want || !strings.Contains(message, tc.message) {
				t.Errorf("\n%s\nHighlyAvailable is %s, %s: %s", tc.reason, status, reason, message)
			}
			r := told(t, p).Resilience
			if diff := cmp.Diff(tc.survive, r.Survives); diff != "" {
				t.Errorf("\n%s\nwhat it survives: -want, +got:\n%s", tc.reason, diff)
			}
			for _, risk := range tc.risks {
				if !strings.Contains(strings.Join(r.Risks, "\n"), risk) {
					t.Errorf("\n%s\nrisks lack %q: %q", tc.reason, risk, r.Risks)
				}
			}
		})
	}
}

// TestGroupChanges: what is read at the start restarts members one by one, the leader last; the rest reaches them at run time.
func TestGroupChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, fields string
		restarts       bool
		effect         v1alpha1.ChangeEffect
	}{
		"Reload": {
			"SET GLOBAL is enough.", `config: {wait_timeout: "600"}`, false,
			v1alpha1.ChangeEffect{Field: "spec.config", Effect: "Reload", Parameters: []string{"wait_timeout"}, Cause: "Spec"},
		},
		"Profile": {
			"How soon a member is expelled is set at run time.", `availability: {profile: Fast}`, false,
			v1alpha1.ChangeEffect{
				Field: "spec.availability.profile", Effect: "Reload", Parameters: []string{"group_replication_member_expel_timeout"}, Cause: "Spec",
			},
		},
		"Restart": {
			"The memory of connections is taken from the buffer pool.", `config: {max_connections: "200"}`, true,
			v1alpha1.ChangeEffect{Field: "spec.config", Effect: "Restart", Parameters: []string{"max_connections"}, Cause: "Spec"},
		},
		"Memory": {
			"The buffer pool follows from it.", `resources: {memory: 2Gi}`, true,
			v1alpha1.ChangeEffect{Field: "spec.resources.memory", Effect: "Restart", Parameters: []string{"innodb_buffer_pool_size"}, Cause: "Spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, group)
			before := w.revisions()
			w.edit(with(group, tc.fields))
			p := w.plan()
			found := false
			if change := told(t, p).Change; change != nil {
				for _, e := range change.Effects {
					found = found || cmp.Equal(e, tc.effect)
				}
			}
			if tc.restarts && !found {
				t.Errorf("\n%s\nthe change lacks %+v: %+v", tc.reason, tc.effect, told(t, p).Change)
			}
			w.pass()
			if !tc.restarts {
				if diff := cmp.Diff(before, w.revisions()); diff != "" {
					t.Errorf("\n%s\nrevisions: -before, +after:\n%s", tc.reason, diff)
				}
				for _, name := range tc.effect.Parameters {
					if config := compose.Text(w.request.Observed[names.DCS].Map(), "metadata", "annotations", names.AnnotationConfig); !strings.Contains(config, `"`+name+`":`) {
						t.Errorf("\n%s\nmembers are not told of %s: %s", tc.reason, name, config)
					}
				}
				return
			}
			order := []string{}
			for range 12 {
				for letter, revision := range w.revisions() {
					if revision != before[letter] {
						before[letter] = revision
						order = append(order, letter)
					}
				}
				w.pass()
			}
			if diff := cmp.Diff([]string{"b", "c", "a"}, order); diff != "" {
				t.Errorf("\n%s\norder of restarts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGroupHooks: members wait for the hooks before, which run in the engine's image as the consumer.
func TestGroupHooks(t *testing.T) {
	w := running(t, group)
	was := w.revisions()
	w.edit(with(group, `config: {max_connections: "200"}, maintenance: {hooks: {before: [{name: pause-jobs, sql: {statement: "UPDATE jobs SET paused = TRUE"}}], after: [{name: tell, http: {url: "http://chat.tools.svc/done"}}]}}`))
	if !w.untilJob() || w.restarted(was) > 0 {
		t.Fatalf("want the hook before members are touched, got %d members", w.restarted(was))
	}
	p := w.pass()
	for resource, o := range w.request.Observed {
		if !strings.HasPrefix(resource, names.HookPrefix) {
			continue
		}
		raw, err := json.Marshal(o.Map())
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, want := range []string{`"image":"ghcr.io/capstan-dev/mysql:v1"`, `"command":["/usr/local/bin/capstan-member","hook"]`, `"mountPath":"/etc/capstan/connection"`, `"secretName":"orders-db-app"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", resource, want, text)
			}
		}
	}
	if policy := encodedObject(t, p, names.HooksNetworkPolicy); !strings.Contains(policy, `"port":3306`) {
		t.Errorf("the hook cannot reach the server: %s", policy)
	}
	w.job("Complete")
	if !w.untilJobAfter(was) {
		t.Fatalf("want all members to be restarted and then the hook after, got %d", w.restarted(was))
	}
	w.job("Complete")
	for range 4 {
		w.pass()
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("want it to be over, got %s %s %s", status, reason, message)
	}
}

// TestGroupHibernates: those that follow leave the group before the leader stops, and the leader begins alone.
func TestGroupHibernates(t *testing.T) {
	w := running(t, group)
	w.edit(with(group, "hibernated: true"))
	for _, want := range []map[string]int64{{"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 0, "c": 0}} {
		w.pass()
		if diff := cmp.Diff(want, w.asks()); diff != "" {
			t.Fatalf("-want, +got:\n%s", diff)
		}
	}
	for range 3 {
		w.pass()
	}
	w.edit(group)
	for _, want := range []map[string]int64{{"a": 1, "b": 0, "c": 0}, {"a": 1, "b": 1, "c": 1}} {
		w.pass()
		if diff := cmp.Diff(want, w.asks()); diff != "" {
			t.Fatalf("-want, +got:\n%s", diff)
		}
	}
}

// TestGroupScalesIn: members are removed one by one while all others are healthy.
func TestGroupScalesIn(t *testing.T) {
	w := running(t, group)
	w.edit(groupOf1)
	at := 3
	for range 12 {
		w.pass()
		n := len(w.revisions())
		if at-n > 1 {
			t.Fatalf("%d members are removed at once", at-n)
		}
		at = n
	}
	if diff := cmp.Diff([]string{"a"}, compose.SortedKeys(w.revisions())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestTableOfEngines: the table of docs/database.md says what each engine has.
func TestTableOfEngines(t *testing.T) {
	raw, err := os.ReadFile("../../docs/database.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(remedy string) string {
		switch {
		case remedy == "":
			return "yes"
		case strings.Contains(remedy, " yet:"):
			return "not yet"
		default:
			return "no"
		}
	}
	rows := []string{}
	for _, f := range engine.Features() {
		rows = append(rows, "| "+string(f)+" | "+says(engines[v1alpha1.EnginePostgres].Lacks(f))+" | "+says(engines[v1alpha1.EngineMySQL].Lacks(f))+" |")
	}
	if want := strings.Join(rows, "\n") + "\n\n"; !strings.Contains(string(raw), want) {
		t.Errorf("docs/database.md lacks this table:\n%s", want)
	}
}
