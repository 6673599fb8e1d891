// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/donor"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

// full is the type of every backup: each one restores alone.
const full = "full"

// fresh is where the data of the server is that copies.
const fresh = mysqlmember.FolderVolume + "/fresh"

// copyMemory is what the servers of a backup take for pages, in bytes.
const copyMemory = 64 << 20

// Backup takes one backup. It runs in a pod of its own: it copies the data of a member to its own volume, and brings that to the bucket.
type Backup struct {
	Folder string `default:"/tmp"                 help:"Folder for sockets." type:"existingdir"`
	Output string `default:"/dev/termination-log" env:"TERMINATION_LOG"      help:"File that the result is written to as well." hidden:""`
}

// Run takes the backup and removes those that are older than the Database keeps them.
func (c *Backup) Run(ctx context.Context, log *slog.Logger) error {
	w, err := layout.ReadConfig()
	if err != nil {
		return err
	}
	if w.Backup == nil || !w.Backup.Enabled {
		return errors.New("backups are off: set spec.backup.enabled")
	}
	place := layout.Repository(*w.Backup)
	volume := []string{place.Scratch, fresh, mysqlmember.FolderData}
	if err := clearAll(volume...); err != nil {
		return err
	}
	// The pod, and its volume with it, stays for a while after it has ended.
	defer func() { _ = clearAll(volume...) }()
	// Before hours are spent on a copy.
	to, err := repository.Open(ctx, place)
	if err != nil {
		return err
	}
	b := repository.Backup{Stanza: w.Backup.Stanza, Began: time.Now().UTC()}
	if err := c.copy(ctx, log, w.Backup.Members, &b); err != nil {
		return err
	}
	log.Info("copied", "took", b.Ended.Sub(b.Began).String(), "transactions", b.Set.String())
	begun := time.Now()
	if b, err = to.Save(ctx, mysqlmember.FolderData, b); err != nil {
		return err
	}
	log.Info("saved", "label", b.Label, "size", b.Size, "added", b.Added, "took", time.Since(begun).String())
	keep := repository.Retention{Days: w.Backup.RetentionDays, Full: w.Backup.RetentionFull, Former: w.Backup.Former}
	if err := to.Expire(ctx, keep, time.Now()); err != nil {
		log.Warn("cannot remove backups that are older than they are kept, the next backup tries again", "error", err)
	}
	return outcome.Print(os.Stdout, c.Output, outcome.Backup{Label: b.Label, Type: full, Size: b.Size, Added: b.Added, Began: b.Began, Ended: b.Ended})
}

// clearAll folders.
func clearAll(folders ...string) error {
	for _, f := range folders {
		if err := os.RemoveAll(f); err != nil {
			return fmt.Errorf("cannot clear the volume: %w", err)
		}
	}
	return nil
}

// copy the data of the member that is fit best, and note what the copy is of.
func (c *Backup) copy(ctx context.Context, log *slog.Logger, hosts []string, b *repository.Backup) error {
	member := func(name string) string { return filepath.Join(mysqlmember.FolderMembers, name) }
	identity, err := certificate.Identity(member("tls.crt"), member("tls.key"), member("ca.crt"))
	if err != nil {
		return err
	}
	donors, err := donor.Find(ctx, identity, hosts)
	if err != nil {
		return err
	}
	b.Leader = donor.OfLeader(donors)
	// A server says what to copy, and copies it. It needs data of its own.
	if err := server.Initialize(ctx, fresh); err != nil {
		return err
	}
	says := server.Scratch{
		Data: fresh, Folder: c.Folder, Account: "root", Memory: copyMemory, Plugins: []string{"mysql_clone.so"}, Log: os.Stderr,
		Settings: []string{"clone-ssl-ca=" + member("ca.crt"), "clone-ssl-cert=" + member("tls.crt"), "clone-ssl-key=" + member("tls.key")},
	}
	running, err := says.Start(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, d := range donors {
		log.Info("copying", "member", layout.MemberOf(d.Host), "leader", d.IsLeader)
		b.Group = d.Group
		err := running.Clone(ctx, d.Host, mysqlmember.FolderData)
		problems = append(problems, err)
		b.Ended = time.Now().UTC()
		if err == nil || ctx.Err() != nil {
			break
		}
		log.Warn("cannot copy", "member", layout.MemberOf(d.Host), "error", err)
		if err := clearAll(mysqlmember.FolderData); err != nil {
			return err
		}
	}
	running.Kill()
	if problems[len(problems)-1] != nil {
		return errors.Join(problems...)
	}
	if err := clearAll(fresh); err != nil {
		return err
	}
	return c.look(ctx, b)
}

// look at what the copy holds. Only a server over it shows that, and its log is small and replayed then.
func (c *Backup) look(ctx context.Context, b *repository.Backup) error {
	over := server.Scratch{
		Data: mysqlmember.FolderData, Folder: c.Folder, Memory: copyMemory, Log: os.Stderr, Settings: []string{"innodb-redo-log-capacity=8388608"},
	}
	running, err := over.Start(ctx)
	if err != nil {
		return fmt.Errorf("cannot read what was copied: %w", err)
	}
	if b.Set, err = running.Executed(ctx); err == nil {
		b.Version, err = running.Version(ctx)
	}
	if err != nil {
		running.Kill()
		return err
	}
	if err := running.Stop(); err != nil {
		return fmt.Errorf("cannot read what was copied: %w", err)
	}
	b.Series = series(b.Version)
	return server.Tidy(mysqlmember.FolderData)
}

// series of a version, as in 9.7 of 9.7.4.
func series(version string) string {
	if i := strings.LastIndexByte(version, '.'); i > 0 {
		return version[:i]
	}
	return version
}
