// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// makeCertificate files, as the Secret of who uses a volume of backups is mounted.
func makeCertificate(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, server string
		files          []string
		missing        bool
		place          string
	}{
		"Served":  {"A volume is reached by its host.", "orders-repository.shop.svc", []string{"tls.crt", "tls.key", "ca.crt"}, false, inVolume},
		"NoKey":   {"What is missing is told as that.", "orders-repository.shop.svc", []string{"tls.crt", "ca.crt"}, true, inBucket},
		"Nothing": {"So is a Secret that is not there.", "orders-repository.shop.svc", nil, true, inBucket},
		"Moved":   {"A pod that was made for a bucket goes on with that, which is not whole here.", "orders-repository.shop.svc", []string{"endpoint", "tls.crt", "tls.key", "ca.crt"}, true, inBucket},
		"Bucket":  {"Without a host it is a bucket, which this is not.", "", []string{"tls.crt", "tls.key", "ca.crt"}, true, inBucket},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Read(makeCertificate(t, tc.files...), tc.server)
			var n *NotReadyError
			if errors.As(err, &n) != tc.missing || err != nil && !tc.missing {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.place, r.Place()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServedConfig: who comes has the key and says nothing of where it is, and the host that serves has no key.
func TestServedConfig(t *testing.T) {
	served := Repository{Served: &Served{"orders-repository.shop.svc", TLS{Cert: "/c", Key: "/k", CA: "/a"}}, Passphrase: "correct-horse-battery-staple"}
	member := Member(pgmember.Backup{Stanza: "orders-17", Path: "/shop/orders"}, served, Folders{Data: "/data", Lock: "/lock"}, TLS{Address: "10.0.0.1"}).String()
	server := Server("/data/repository", Folders{Lock: "/lock"}, TLS{Cert: "/sc", Key: "/sk", CA: "/sa", Address: "10.0.0.9"}).String()
	host := Host(pgmember.Backup{Stanza: "orders-17", Members: []string{"a"}, RetentionDays: 30}, Repository{Local: "/data/repository", Passphrase: "correct-horse-battery-staple"},
		Folders{Data: "/data", Lock: "/lock"}, TLS{Cert: "/sc", Key: "/sk", CA: "/sa"}, "/run/pgbackrest.conf").String()
	for name, tc := range map[string]struct {
		reason, config string
		want, without  []string
	}{
		"Member": {
			"It encrypts before it sends.", member,
			[]string{"repo1-host=orders-repository.shop.svc\n", "repo1-host-type=tls\n", "repo1-host-cert-file=/c\n", "repo1-host-config=" + ServerConfig + "\n", "repo1-cipher-pass=correct"},
			[]string{"repo1-path", "repo1-s3", "repo1-type"},
		},
		"Server": {
			"It serves who has a certificate for it, and opens nothing.", server,
			[]string{"repo1-path=/data/repository\n", "tls-server-auth=repository=*\n", "tls-server-address=10.0.0.9\n"},
			[]string{"cipher", "repo1-host", "pg1-"},
		},
		"Host": {
			"It takes backups of members, with the key.", host,
			[]string{"repo1-path=/data/repository\n", "repo1-cipher-pass=correct", "pg1-host=a\n", "pg1-host-cert-file=/sc\n", "repo1-retention-full=30\n"},
			[]string{"repo1-host", "repo1-s3", "tls-server"},
		},
	} {
		for _, want := range tc.want {
			if !strings.Contains(tc.config, want) {
				t.Errorf("%s: %s: no %q in\n%s", name, tc.reason, want, tc.config)
			}
		}
		for _, not := range tc.without {
			if strings.Contains(tc.config, not) {
				t.Errorf("%s: %s: %q in\n%s", name, tc.reason, not, tc.config)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		s      pgmember.Backup
		ok     bool
	}{
		"Good":    {"What the composition makes is fine.", pgmember.Backup{Stanza: "orders-db-3f2a9c1b-g2-17", Members: []string{"orders-db-a-0.orders-db-pods.shop.svc"}}, true},
		"Option":  {"A line break would begin an option.", pgmember.Backup{Stanza: "a]\nrepo1-path=/x", Members: []string{"a"}}, false},
		"Path":    {"A stanza is no path.", pgmember.Backup{Stanza: "../x", Members: []string{"a"}}, false},
		"Nothing": {"A stanza has a name.", pgmember.Backup{Members: []string{"a"}}, false},
		"Nobody":  {"A backup is one of somebody.", pgmember.Backup{Stanza: "a"}, false},
		"Host":    {"A host is a name.", pgmember.Backup{Stanza: "a", Members: []string{"a", "b\npg1-path=/"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(tc.s); (err == nil) != tc.ok {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
		})
	}
}
