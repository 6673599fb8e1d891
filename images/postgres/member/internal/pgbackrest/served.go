// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/vault"
)

// ServerConfig is the configuration of the pgBackRest that serves a repository, on its host.
const ServerConfig = "/tmp/repository/pgbackrest.conf"

// Served is a repository on a volume, behind the host that serves it.
type Served struct {
	// Server is the name of the host.
	Server string
	// TLS identity to come with.
	TLS TLS
}

// Identity in the folder that its Secret is mounted to.
func Identity(dir string) TLS {
	return TLS{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}
}

// Client side of a connection with this identity. Its files are read again for each, for certificates change.
func (t TLS) Client() (*tls.Config, error) {
	c, err := certificate.Identity(t.Cert, t.Key, t.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the volume of backups: %w", err)
	}
	return c, nil
}

// Words for where backups are.
const (
	inBucket = "the bucket"
	inVolume = vault.Place
)

// Place is where the backups are, for people.
func (r Repository) Place() string {
	if r.Served != nil || r.Local != "" {
		return inVolume
	}
	return inBucket
}

// Place is the word for where backups are, for a server of a volume or "".
func Place(server string) string {
	if server != "" {
		return inVolume
	}
	return inBucket
}

// ReadServed is the repository at a host, with the identity in the folder that its Secret is mounted to. The error is a *NotReadyError
// when something is missing there.
func ReadServed(dir, server string) (Repository, error) {
	if _, err := vault.ReadFiles(dir); err != nil {
		return Repository{}, err
	}
	return Repository{Served: &Served{server, Identity(dir)}}, nil
}

// ReadLocal is the repository in a folder of this host. It is encrypted with the key in the folder of its own, unless that is "".
func ReadLocal(folder, key string) (Repository, error) { return Repository{Local: folder}.withKey(key) }

// withKey in a folder, unless that is "". The error is a *NotReadyError when the key cannot be used.
func (r Repository) withKey(folder string) (Repository, error) {
	if folder == "" {
		return r, nil
	}
	var err error
	if r.Passphrase, err = bucket.ReadKey(filepath.Join(folder, pgmember.FileBackupKey)); err != nil {
		return Repository{}, err
	}
	return r, nil
}

// where options, of a repository at a path of its bucket.
func (r Repository) where(path string) []Option {
	switch {
	case r.Local != "":
		return []Option{{"repo1-path", r.Local}}
	case r.Served != nil:
		// Where it is there, the configuration there says.
		return []Option{
			{"repo1-host", r.Served.Server},
			{"repo1-host-type", "tls"},
			{"repo1-host-port", strconv.Itoa(pgmember.PortBackup)},
			{"repo1-host-cert-file", r.Served.TLS.Cert},
			{"repo1-host-key-file", r.Served.TLS.Key},
			{"repo1-host-ca-file", r.Served.TLS.CA},
			{"repo1-host-config", ServerConfig},
		}
	default:
		return append([]Option{
			{"repo1-type", "s3"},
			{"repo1-path", path},
			{"repo1-s3-uri-style", "path"},
			{"repo1-s3-bucket", r.Bucket},
			{"repo1-s3-endpoint", r.Host},
			{"repo1-storage-port", r.Port},
			{"repo1-s3-region", r.Region},
			{"repo1-storage-ca-file", r.CA},
		}, r.keys()...)
	}
}

// Server is the configuration of who serves a repository in a folder of its own. It has no key: what is encrypted, those encrypt
// and read who come with it.
func Server(folder string, f Folders, t TLS) *Config {
	c := &Config{}
	c.section("global", append(append(Repository{Local: folder}.options(""), f.common()...),
		Option{"io-timeout", "60"},
		Option{"tls-server-address", t.Address},
		Option{"tls-server-port", strconv.Itoa(pgmember.PortBackup)},
		Option{"tls-server-cert-file", t.Cert},
		Option{"tls-server-key-file", t.Key},
		Option{"tls-server-ca-file", t.CA},
		// The volume is of one Database, and has a stanza for each generation of it.
		Option{"tls-server-auth", pgmember.RepositoryCommonName + "=*"})...)
	return c
}

// Names of stanzas and hosts, as the composition makes them.
var (
	stanzaName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,126}[a-z0-9])?$`)
	hostName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
)

// Check settings that come from another host: names become part of a configuration.
func Check(s pgmember.Backup) error {
	if !stanzaName.MatchString(s.Stanza) || strings.Contains(s.Stanza, "..") {
		return fmt.Errorf("%q cannot be a stanza", s.Stanza)
	}
	if len(s.Members) == 0 {
		return errors.New("there is no member to take a backup of")
	}
	for _, m := range s.Members {
		if !hostName.MatchString(m) {
			return fmt.Errorf("%q cannot be the host of a member", m)
		}
	}
	return nil
}
