// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	credentials "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

const credentialCRD = "package/provider/crds/credentials.capstan.dev_credentials.yaml"

// credential is a Credential with these parameters.
func credential(t *testing.T, parameters string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(parameters), &values); err != nil {
		t.Fatalf("bad YAML in a test: %v", err)
	}
	return map[string]any{
		"apiVersion": "credentials.capstan.dev/v1alpha1",
		"kind":       "Credential",
		"metadata":   map[string]any{"name": "orders", "namespace": "shop"},
		"spec":       map[string]any{"forProvider": whole(values)},
	}
}

func TestCredentialAccepted(t *testing.T) {
	a := newAdmission(t, readCRD(t, credentialCRD))
	cases := map[string]struct {
		reason     string
		parameters string
	}{
		"Nothing":          {reason: "All has a default.", parameters: `{}`},
		"Before":           {reason: "What was valid before there were more fields stays valid.", parameters: `{length: 16}`},
		"Longest":          {reason: "What was valid before there were more fields stays valid.", parameters: `{length: 128}`},
		"Hexadecimal":      {reason: "24 characters of 4 bits are enough.", parameters: `{alphabet: Hexadecimal, length: 24}`},
		"LongerKey":        {reason: "A key's own length counts.", parameters: `{length: 16, keys: [{name: a, length: 24, alphabet: Hexadecimal}]}`},
		"SixteenKeys":      {reason: "The bound itself is within bounds.", parameters: `{keys: [` + keys(16) + `]}`},
		"DotsAndDashes":    {reason: "A key of a Secret may have them.", parameters: `{keys: [{name: A.b_c-d}]}`},
		"TwoDerivations":   {reason: "Two servers may want two forms.", parameters: `{keys: [{name: password, derive: [{format: SCRAM-SHA-256, key: a}, {format: Bcrypt, key: b}]}]}`},
		"ForMySQL":         {reason: "Its servers want another form.", parameters: `{length: 128, keys: [{name: password, derive: [{format: CachingSHA2, key: verifier}]}]}`},
		"BcryptAtItsLimit": {reason: "72 bytes are read to the end.", parameters: `{length: 72, keys: [{name: password, derive: [{format: Bcrypt, key: hash}]}]}`},
		"LongAndSCRAM":     {reason: "SCRAM reads all.", parameters: `{length: 128, keys: [{name: password, derive: [{format: SCRAM-SHA-256, key: v}]}]}`},
		"Schedule":         {reason: "A schedule is enough.", parameters: `{rotation: {every: 1h}}`},
		"MixedUnits":       {reason: "Units may be mixed.", parameters: `{rotation: {every: 1h30m, keepPrevious: 90s}}`},
		"ID":               {reason: "An id is enough.", parameters: `{rotation: {id: "2026-11-21T20:15:00Z"}}`},
		"Leaked":           {reason: "Nothing previous may be wanted.", parameters: `{rotation: {id: leak, keepPrevious: 0s}}`},
		"HostOnly":         {reason: "One host is enough.", parameters: `{connection: {type: postgresql, host: db, port: 5432, username: u}}`},
		"HostsOnly":        {reason: "So are members.", parameters: `{connection: {type: mysql, hosts: [{host: a, port: 1}, {host: b, port: 65535}], username: u}}`},
		"Endpoints":        {reason: "There may be other ways to it.", parameters: `{connection: {type: postgresql, host: db, port: 5432, username: u, endpoints: [{name: pooler, host: db-pooler, port: 5432}, {name: external, host: "2001:db8::1", port: 5432}]}}`},
		"OneMember":        {reason: "A list of one is for everybody.", parameters: `{connection: {type: redis, hosts: [{host: a, port: 6379}]}}`},
		"IPv4":             {reason: "An address is a host.", parameters: `{connection: {type: redis, host: 10.0.0.1, port: 6379}}`},
		"IPv6":             {reason: "An address is a host.", parameters: `{connection: {type: redis, host: "fd00::1", port: 6379}}`},
		"NoUser":           {reason: "Not every type has users.", parameters: `{connection: {type: redis, host: a, port: 6379}}`},
		"Alternate":        {reason: "Two usernames may take turns.", parameters: `{rotation: {every: 720h, accepted: 8-3f2a9c1b}, connection: {type: postgresql, host: a, port: 1, username: u, alternateUsername: u-b}}`},
		"UnicodeUser":      {reason: "A name may have any letters.", parameters: `{connection: {type: postgresql, host: a, port: 1, username: "müller & söhne"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, credential(t, tc.parameters)); len(errs) > 0 {
				t.Errorf("\n%s\ncreate(...): want no errors, got:\n%s", tc.reason, strings.Join(errs, "\n"))
			}
		})
	}
}

// keys are n keys in the form of YAML.
func keys(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "{name: k" + string(rune('a'+i)) + "}"
	}
	return strings.Join(list, ", ")
}

func TestCredentialRefused(t *testing.T) {
	a := newAdmission(t, readCRD(t, credentialCRD))
	// What every message begins with, and what several share.
	const (
		at       = "spec.forProvider"
		object   = ": Invalid value: "
		hex      = at + object + "keys: alphabet Hexadecimal needs a length of at least 24, because its characters are 4 bits each: raise length, or choose alphabet Alphanumeric"
		bcrypt   = at + object + "keys: format Bcrypt needs a length of at most 72, because it reads no further: lower length, or derive SCRAM-SHA-256"
		password = at + object + "connection: needs a key with the name password: add it to keys"
		key      = `must be letters, digits, -, _ and . with a letter or digit at both ends, not end in .previous, ` +
			`and be none of type, provider, host, port, database, username, uri, multi-host-uri, jdbc-url, ca.crt`
		every = `must be a duration of at least 1h in h, m and s, for instance 720h for 30 days`
		kept  = `must be a duration of at most 8760h in h, m and s, for instance 24h`
		host  = `must be a DNS name or an IP address, without scheme, port and brackets`
		conn  = at + ".connection"
	)
	cases := map[string]struct {
		reason     string
		parameters string
		want       []string
	}{
		"TooShort":       {reason: "A value must not be guessed.", parameters: `{length: 15}`, want: []string{at + ".length: Invalid value: 15: " + at + ".length in body should be greater than or equal to 16"}},
		"HexTooShort":    {reason: "23 characters of 4 bits are too few.", parameters: `{alphabet: Hexadecimal, length: 23}`, want: []string{hex}},
		"HexKeyTooShort": {reason: "A key's own length counts.", parameters: `{alphabet: Hexadecimal, keys: [{name: a}, {name: b, length: 16}]}`, want: []string{hex}},
		"OwnAlphabet":    {reason: "A key's own alphabet counts.", parameters: `{length: 16, keys: [{name: a, alphabet: Hexadecimal}]}`, want: []string{hex}},
		"UnknownAlphabet": {
			reason: "What nobody implements is refused.", parameters: `{alphabet: Emoji}`,
			want: []string{at + `.alphabet: Unsupported value: "Emoji": supported values: "Alphanumeric", "Hexadecimal", "Printable"`},
		},
		"NoKeys":        {reason: "Without keys there is nothing to generate.", parameters: `{keys: []}`, want: []string{at + ".keys: Invalid value: 0: " + at + ".keys in body should have at least 1 items"}},
		"SeventeenKeys": {reason: "More than the bound is refused.", parameters: `{keys: [` + keys(17) + `]}`, want: []string{at + ".keys: Too many: 17: must have at most 16 items"}},
		"SameKey":       {reason: "One name, one value.", parameters: `{keys: [{name: a}, {name: a}]}`, want: []string{at + `.keys[1]: Duplicate value: {"name":"a"}`}},
		"ReservedKey":   {reason: "A key of a connection is no key for a value.", parameters: `{keys: [{name: uri}]}`, want: []string{at + `.keys[0].name` + object + `"uri": ` + key}},
		"PreviousKey":   {reason: "Previous values have their place.", parameters: `{keys: [{name: a.previous}]}`, want: []string{at + `.keys[0].name` + object + `"a.previous": ` + key}},
		"BadKey":        {reason: "A Secret takes no slash.", parameters: `{keys: [{name: a/b}]}`, want: []string{at + `.keys[0].name` + object + `"a/b": ` + key}},
		"ReservedDerive": {
			reason: "What is derived must not take the place of a connection's key.", parameters: `{keys: [{name: a, derive: [{format: Bcrypt, key: host}]}]}`,
			want: []string{at + `.keys[0].derive[0].key` + object + `"host": ` + key},
		},
		"DerivedOverKey": {
			reason: "What is derived must not take the place of a value.", parameters: `{keys: [{name: a, derive: [{format: Bcrypt, key: b}]}, {name: b}]}`,
			want: []string{at + ".keys" + object + "keys: a derived key must not have the name of a generated one: choose another derive key"},
		},
		"DerivedTwice": {
			reason: "One place, one value.", parameters: `{keys: [{name: a, derive: [{format: Bcrypt, key: x}]}, {name: b, derive: [{format: Bcrypt, key: x}]}]}`,
			want: []string{at + ".keys" + object + "keys: two keys must not derive into the same key: choose another derive key"},
		},
		"AlternateAlone": {
			reason: "One takes turns with another.", parameters: `{connection: {type: redis, host: a, port: 1, alternateUsername: u}}`,
			want: []string{conn + ".alternateUsername" + object + `alternateUsername takes turns with username: set username as well, to another name`},
		},
		"AlternateSame": {
			reason: "And not with itself.", parameters: `{connection: {type: redis, host: a, port: 1, username: u, alternateUsername: u}}`,
			want: []string{conn + ".alternateUsername" + object + `alternateUsername takes turns with username: set username as well, to another name`},
		},
		"AlternateControl": {
			reason: "Nobody could type it.", parameters: `{connection: {type: redis, host: a, port: 1, username: u, alternateUsername: "u\n"}}`,
			want: []string{conn + ".alternateUsername" + object + `"u\n": must not have control characters`},
		},
		"CachingSHA2Iterations": {
			reason: "MySQL sets how many rounds there are.", parameters: `{keys: [{name: a, derive: [{format: CachingSHA2, key: v, iterations: 5000}]}]}`,
			want: []string{at + ".keys[0].derive[0].iterations" + object + "iterations are only for format SCRAM-SHA-256: remove them, or set cost"},
		},
		"BcryptTooLong": {reason: "What is cut off is no secret.", parameters: `{length: 73, keys: [{name: password, derive: [{format: Bcrypt, key: hash}]}]}`, want: []string{bcrypt}},
		"BcryptKeyTooLong": {
			reason: "A key's own length counts.", parameters: `{keys: [{name: password, length: 128, derive: [{format: SCRAM-SHA-256, key: v}, {format: Bcrypt, key: hash}]}]}`,
			want: []string{bcrypt},
		},
		"CostOfSCRAM": {
			reason: "A field without an effect is refused.", parameters: `{keys: [{name: a, derive: [{format: SCRAM-SHA-256, key: v, cost: 10}]}]}`,
			want: []string{at + ".keys[0].derive[0].cost" + object + "cost is only for format Bcrypt: remove it, or set iterations"},
		},
		"IterationsOfBcrypt": {
			reason: "A field without an effect is refused.", parameters: `{keys: [{name: a, derive: [{format: Bcrypt, key: v, iterations: 4096}]}]}`,
			want: []string{at + ".keys[0].derive[0].iterations" + object + "iterations are only for format SCRAM-SHA-256: remove them, or set cost"},
		},
		"EmptyRotation": {reason: "A field without an effect is refused.", parameters: `{rotation: {keepPrevious: 1h}}`, want: []string{at + ".rotation" + object + "rotation: set every, id, or both"}},
		"TooOften":      {reason: "Clients need time.", parameters: `{rotation: {every: 59m59s}}`, want: []string{at + `.rotation.every` + object + `"59m59s": ` + every}},
		"Days":          {reason: "Go knows no days.", parameters: `{rotation: {every: 30d}}`, want: []string{at + `.rotation.every` + object + `"30d": ` + every}},
		"Never":         {reason: "Nothing is no time.", parameters: `{rotation: {every: ""}}`, want: []string{at + `.rotation.every` + object + `"": ` + every}},
		"Back":          {reason: "Time does not go back.", parameters: `{rotation: {every: -720h}}`, want: []string{at + `.rotation.every` + object + `"-720h": ` + every}},
		"Overflow":      {reason: "A time that no program can hold is refused.", parameters: `{rotation: {every: 9999999999h}}`, want: []string{at + `.rotation.every` + object + `"9999999999h": ` + every}},
		"KeptForEver":   {reason: "A year is enough.", parameters: `{rotation: {id: a, keepPrevious: 8761h}}`, want: []string{at + `.rotation.keepPrevious` + object + `"8761h": ` + kept}},
		"BadID": {
			reason: "An id is a word.", parameters: `{rotation: {id: "a b"}}`,
			want: []string{at + ".rotation.id" + object + `"a b": must be letters, digits, -, _, . and : with a letter or digit at both ends, for instance 2026-11`},
		},
		"NoPassword":  {reason: "A connection needs a password.", parameters: `{keys: [{name: token}], connection: {type: redis, host: a, port: 1}}`, want: []string{password}},
		"NoHost":      {reason: "A connection goes somewhere.", parameters: `{connection: {type: redis}}`, want: []string{conn + object + "set host and port, or hosts, or all of them"}},
		"NoPort":      {reason: "A host has a port.", parameters: `{connection: {type: redis, host: a}}`, want: []string{conn + object + "set both host and port, or neither"}},
		"PortZero":    {reason: "Nobody listens there.", parameters: `{connection: {type: redis, host: a, port: 0}}`, want: []string{conn + ".port" + object + "0: " + conn + ".port in body should be greater than or equal to 1"}},
		"ManyOfRedis": {reason: "A URI of several hosts is not for everybody.", parameters: `{connection: {type: redis, hosts: [{host: a, port: 1}, {host: b, port: 1}]}}`, want: []string{conn + ".hosts" + object + "clients of type redis accept one host: keep one, or set host and port"}},
		"NoUser":      {reason: "PostgreSQL has users.", parameters: `{connection: {type: postgresql, host: a, port: 1}}`, want: []string{conn + ".username" + object + "type postgresql needs a username"}},
		"JDBCOfRedis": {reason: "A field without an effect is refused.", parameters: `{connection: {type: redis, host: a, port: 1, jdbcOptions: {a: b}}}`, want: []string{conn + ".jdbcOptions" + object + "type redis has no jdbc-url: remove jdbcOptions"}},
		"URLAsHost":   {reason: "A host is a host.", parameters: `{connection: {type: redis, host: "redis://a", port: 1}}`, want: []string{conn + ".host" + object + `"redis://a": ` + host}},
		"HostAndPort": {reason: "A host is a host.", parameters: `{connection: {type: redis, host: "a:1", port: 1}}`, want: []string{conn + ".host" + object + `"a:1": ` + host}},
		"TwoInOne":    {reason: "A host is one host.", parameters: `{connection: {type: redis, host: "a,b", port: 1}}`, want: []string{conn + ".host" + object + `"a,b": ` + host}},
		"UserInHost":  {reason: "A host is a host.", parameters: `{connection: {type: redis, hosts: [{host: "u@a", port: 1}]}}`, want: []string{conn + ".hosts[0].host" + object + `"u@a": ` + host}},
		"BadType":     {reason: "A type is the scheme of a URI.", parameters: `{connection: {type: Postgre SQL, host: a, port: 1}}`, want: []string{conn + ".type" + object + `"Postgre SQL": must be lower case letters, digits and -, start with a letter and end with a letter or digit, for instance postgresql`}},
		"NewlineInUser": {
			reason: "A line break must not begin another setting somewhere.", parameters: `{connection: {type: redis, host: a, port: 1, username: "a\nb"}}`,
			want: []string{conn + ".username" + object + `"a\nb": ` + "must not have control characters"},
		},
		"PasswordInOptions": {
			reason: "A password is in no manifest.", parameters: `{connection: {type: redis, host: a, port: 1, options: {Password: x}}}`,
			want: []string{conn + ".options" + object + "names must be at most 63 letters, digits, -, _ and ., start with a letter, and not be user, username, password, passfile, host, hostaddr, port, dbname or database: use the fields beside options for them"},
		},
		"PasswordInJDBC": {
			reason: "A password is in no JDBC URL.", parameters: `{connection: {type: mysql, username: u, host: a, port: 1, jdbcOptions: {password: x}}}`,
			want: []string{conn + ".jdbcOptions" + object + "names must be at most 63 letters, digits, -, _ and ., start with a letter, and not be for user, password, host, port or database: use the fields beside jdbcOptions for them"},
		},
		"TwoCAs": {
			reason: "One place.", parameters: `{connection: {type: redis, host: a, port: 1, caFrom: {secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}}}`,
			want: []string{conn + ".caFrom" + object + "set exactly one of secretKeyRef and configMapKeyRef"},
		},
		"OtherNamespace": {
			reason: "Nothing is read from another namespace.", parameters: `{connection: {type: redis, host: a, port: 1, caFrom: {secretKeyRef: {name: a, key: b, namespace: kube-system}}}}`,
			want: []string{`unknown field "` + conn + `.caFrom.secretKeyRef.namespace"`},
		},
		"PathAsName": {
			reason: "A name leads nowhere else.", parameters: `{connection: {type: redis, host: a, port: 1, caFrom: {secretKeyRef: {name: ../a, key: b}}}}`,
			want: []string{conn + ".caFrom.secretKeyRef.name" + object + `"../a": ` + "must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got := a.create(t, credential(t, tc.parameters))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ncreate(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCredentialRoundTrip shows that nothing that is stored is lost on its way through the Go type.
func TestCredentialRoundTrip(t *testing.T) {
	const path = "test/schema/testdata/credential.yaml"
	object, typed := map[string]any{}, &credentials.Credential{}
	readYAML(t, path, &object)
	readYAML(t, path, typed)

	covered := map[string]bool{}
	cover(covered, "", object)
	for _, n := range nodes(t, "", written(t)[credentialCRD], nil) {
		// The other half of a choice.
		choice := strings.Contains(n.path, ".configMapKeyRef.")
		if n.leaf() && !n.seen() && !covered[n.path] && !choice && n.path != ".metadata" {
			t.Errorf("%s lacks %s", path, n.path)
		}
	}
	if _, errs := newAdmission(t, readCRD(t, credentialCRD)).create(t, whole(object).(map[string]any)); len(errs) > 0 {
		t.Errorf("%s is not valid:\n%s", path, strings.Join(errs, "\n"))
	}
	data, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := yaml.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "status")
	if diff := cmp.Diff(whole(object), whole(got)); diff != "" {
		t.Errorf("-what was read, +what is written:\n%s", diff)
	}
}
