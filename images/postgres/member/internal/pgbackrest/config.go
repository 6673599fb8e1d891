// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/durable"
)

// A Config is pgBackRest's, section by section.
type Config struct{ b strings.Builder }

// An Option of pgBackRest and its value.
type Option struct{ Name, Value string }

// section with its options. Those without a value are left out.
func (c *Config) section(name string, options ...Option) {
	fmt.Fprintf(&c.b, "[%s]\n", name)
	for _, o := range options {
		if o.Value != "" {
			fmt.Fprintf(&c.b, "%s=%s\n", o.Name, o.Value)
		}
	}
	c.b.WriteByte('\n')
}

func (c *Config) String() string { return c.b.String() }

// Write the file, readable for its owner only, as a whole or not at all. It reports whether the file was another before.
func (c *Config) Write(file string) (bool, error) {
	text := []byte(c.String())
	before, err := os.ReadFile(file)
	if err == nil && bytes.Equal(before, text) {
		return false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot read the configuration of backups: %w", err)
	}
	if err := durable.Write(file, text); err != nil {
		return false, fmt.Errorf("cannot write the configuration of backups: %w", err)
	}
	return true, nil
}

// Runner of pgBackRest with the configuration, which is written to a file.
func (c *Config) Runner(file string) (Runner, error) {
	_, err := c.Write(file)
	return Runner{Program: Program, Config: file}, err
}

// Folders that a configuration needs.
type Folders struct {
	// Data of PostgreSQL, and Socket of its server.
	Data, Socket string
	// Spool keeps segments that are on their way, and Lock who works at the moment.
	Spool, Lock string
}

// A TLS identity of one side: files of certificate, key and authority, and where a server listens.
type TLS struct{ Cert, Key, CA, Address string }

// fetchAhead is how much of the archive is fetched before it is wanted. It is less than the volume of a spool has room for.
const fetchAhead = "64MiB"

// repository options, for an archive or backup at a path.
func (r Repository) options(path string) []Option {
	cipher := ""
	if r.Passphrase != "" {
		cipher = "aes-256-cbc"
	}
	return slices.Concat([]Option{
		{"repo1-cipher-type", cipher},
		{"repo1-cipher-pass", r.Passphrase},
	}, r.where(path), []Option{
		// Many small files are one object, and of a large one that changed a little only its blocks are kept again.
		{"repo1-bundle", "y"},
		{"repo1-block", "y"},
	})
}

// common options of all who run.
func (f Folders) common() []Option {
	return []Option{
		{"lock-path", f.Lock},
		{"log-level-console", "off"},
		{"log-level-stderr", "warn"},
		{"log-level-file", "off"},
		{"compress-type", "zst"},
		{"compress-level", "3"},
		{"protocol-timeout", "1860"},
		{"db-timeout", "1800"},
	}
}

// Member is the configuration of a member: it archives, reports what there is, and serves the pods that take backups.
func Member(s pgmember.Backup, r Repository, f Folders, t TLS) *Config {
	c := &Config{}
	c.section("global", append(append(r.options(s.Path), f.common()...),
		Option{"spool-path", f.Spool},
		Option{"archive-async", "y"},
		// A repository that does not answer is reported before PostgreSQL hears that the time is up, which is no cause.
		Option{"io-timeout", "15"},
		Option{"archive-timeout", "60"},
		Option{"tls-server-address", t.Address},
		Option{"tls-server-port", strconv.Itoa(pgmember.PortBackup)},
		Option{"tls-server-cert-file", t.Cert},
		Option{"tls-server-key-file", t.Key},
		Option{"tls-server-ca-file", t.CA},
		Option{"tls-server-auth", pgmember.BackupCommonName + "=" + s.Stanza})...)
	c.section("global:archive-push", atLeastTwo(s.Processes))
	c.section(s.Stanza, Option{"pg1-path", f.Data}, Option{"pg1-socket-path", f.Socket})
	return c
}

// Host is the configuration of who takes backups: the repository's host, and all members behind their names. Configuration of a
// member is in its file.
func Host(s pgmember.Backup, r Repository, f Folders, t TLS, file string) *Config {
	c := &Config{}
	options := append(append(r.options(s.Path), f.common()...),
		// The backup begins at once, and not with the next checkpoint. It is read from a member that follows, if one does.
		Option{"start-fast", "y"},
		Option{"backup-standby", "prefer"},
		// A standby that is read has to end a checkpoint first, which may take twice checkpoint_timeout.
		Option{"archive-timeout", "1800"},
		Option{"process-max", strconv.FormatInt(max(1, s.Processes), 10)})
	if s.RetentionDays > 0 {
		options = append(options, Option{"repo1-retention-full-type", "time"}, Option{"repo1-retention-full", strconv.Itoa(s.RetentionDays)})
	} else {
		options = append(options, Option{"repo1-retention-full-type", "count"}, Option{"repo1-retention-full", strconv.Itoa(max(1, s.RetentionFull))})
	}
	c.section("global", options...)
	members := make([]Option, 0, 9*len(s.Members))
	for i, host := range s.Members {
		pg := "pg" + strconv.Itoa(i+1)
		members = append(members,
			Option{pg + "-host", host},
			Option{pg + "-host-type", "tls"},
			Option{pg + "-host-port", strconv.Itoa(pgmember.PortBackup)},
			Option{pg + "-host-cert-file", t.Cert},
			Option{pg + "-host-key-file", t.Key},
			Option{pg + "-host-ca-file", t.CA},
			Option{pg + "-host-config", file},
			Option{pg + "-path", f.Data},
			Option{pg + "-socket-path", f.Socket})
	}
	c.section(s.Stanza, members...)
	return c
}

// atLeastTwo processes: they wait for the repository more than they compute.
func atLeastTwo(processes int64) Option {
	return Option{"process-max", strconv.FormatInt(max(2, processes), 10)}
}

// Reader is the configuration to restore from a repository with a number of processes. It writes nothing there. While PostgreSQL replays a
// segment, the next ones are fetched.
func Reader(path, stanza string, processes int64, r Repository, f Folders) *Config {
	c := &Config{}
	c.section("global", append(append(r.options(path), f.common()...), Option{"spool-path", f.Spool}, atLeastTwo(processes))...)
	if f.Spool != "" {
		c.section("global:archive-get", Option{"archive-async", "y"}, Option{"archive-get-queue-max", fetchAhead})
	}
	if stanza != "" {
		c.section(stanza, Option{"pg1-path", f.Data}, Option{"pg1-socket-path", f.Socket})
	}
	return c
}
