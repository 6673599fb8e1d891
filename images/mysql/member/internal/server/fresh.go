// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// freshLimit is how long a server may take to begin on data that was just made.
const freshLimit = 2 * time.Minute

// Make data where there is none, with the first accounts and no transaction. It is there as a whole or not at all.
//
// A member that joins a group has its data replaced by the group's. It needs the accounts all the same, because members call it back while
// it joins.
func Make(ctx context.Context) error {
	if empty, err := volume.Empty(mysqlmember.FolderData); err != nil || !empty {
		return err
	}
	if err := os.RemoveAll(layout.Fresh); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	// No client comes by the network, and certificates of its own are of no use.
	own := []string{"--no-defaults", "--datadir=" + layout.Fresh, "--auto-generate-certs=OFF", "--caching-sha2-password-auto-generate-rsa-keys=OFF"}
	if said, err := process.Run(ctx, "", layout.Server, append(own, "--initialize-insecure")...); err != nil {
		return fmt.Errorf("cannot make data: %w: %s", err, process.Tail(said, 500))
	}
	args := append(own, "--skip-networking", "--mysqlx=OFF", "--skip-log-bin", "--secure-file-priv=NULL", "--socket="+layout.FreshSocket,
		"--pid-file="+layout.FreshSocket+".pid", "--group-replication-start-on-boot=OFF")
	for _, p := range plugins {
		args = append(args, "--plugin-load-add="+p)
	}
	var said strings.Builder
	cmd := exec.Command(layout.Server, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	child, err := process.Begin(cmd)
	if err != nil {
		return err
	}
	err = accounts(ctx, child)
	child.Stop(syscall.SIGTERM, time.Minute)
	if err = errors.Join(err, child.Err()); err != nil {
		return fmt.Errorf("cannot make data: %w: %s", err, process.Tail(said.String(), 500))
	}
	// An empty folder would be in the way.
	if err := os.Remove(mysqlmember.FolderData); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot make data: %w", err)
	}
	if err := os.Rename(layout.Fresh, mysqlmember.FolderData); err != nil {
		return fmt.Errorf("cannot make data: %w", err)
	}
	return durable.Sync(filepath.Dir(mysqlmember.FolderData))
}

// accounts of data that a server was just started on.
func accounts(ctx context.Context, child *process.Child) error {
	s, err := mysql.At(layout.FreshSocket, "root")
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, freshLimit)
	defer cancel()
	for {
		err := s.FirstAccounts(ctx)
		if err == nil || !errors.Is(err, mysql.ErrNoAnswer) || ctx.Err() != nil || child.Ended() {
			return err
		}
		loop.Sleep(ctx, 100*time.Millisecond)
	}
}
