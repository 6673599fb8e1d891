// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// slowed is a server behind a network that lets a connection send so many bytes in a second.
func slowed(t *testing.T, endpoint string, rate int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	behind := strings.TrimPrefix(endpoint, "https://")
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go throttle(client, behind, rate)
		}
	}()
	return "https://" + l.Addr().String()
}

// throttle what a client sends, in steps of a tenth of a second.
func throttle(client net.Conn, behind string, rate int64) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server) }()
	for {
		if _, err := io.CopyN(server, client, rate/10); err != nil {
			return
		}
		time.Sleep(time.Second / 10)
	}
}

// TestBackupAtSize has the shape of a backup of terabytes, on a millionth of the scale: a connection to the bucket takes 2 MiB in a
// second, and the deadline is less than the 20 s that one connection needs. One process does not end in time, and four do.
func TestBackupAtSize(t *testing.T) {
	const deadline = 16 * time.Second
	s := newStore(t)
	s.Endpoint = slowed(t, s.Endpoint, 2<<20)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a")
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a")
	for i := range 8 {
		// Data that cannot be compressed, in files of 5 MiB.
		conn, err := c.connect(t.Context(), "a", "shop")
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), fmt.Sprintf(`create table public.big_%d as
			select g, decode(string_agg(md5((random() * s)::text), ''), 'hex') as b from generate_series(1, 320) g, generate_series(1, 1000) s group by g`, i))
		_ = conn.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	c.eventually("the archive has the data", time.Minute, func() bool { c.switchLog("a"); return c.archived("a") })

	begun := time.Now()
	one, said := c.backupWithin(deadline)
	if one.Label != "" {
		t.Fatalf("one process ends within %s: %+v\n%s", time.Since(begun), one, said)
	}
	settings.Processes = 4
	c.want(pgmember.Config{Backup: &settings})
	begun = time.Now()
	four, said := c.backupWithin(deadline)
	if four.Label == "" {
		t.Fatalf("four processes do not end within %s:\n%s", deadline, said)
	}
	t.Logf("four processes took a backup of %d MiB in %s", four.Size>>20, time.Since(begun).Round(100*time.Millisecond))
}
