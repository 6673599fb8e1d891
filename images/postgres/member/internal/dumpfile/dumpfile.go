// SPDX-License-Identifier: Apache-2.0

// Package dumpfile reads what pg_dump wrote: the header and the table of contents of an archive, and the statements of a script. It trusts
// nothing in them, and runs nothing.
package dumpfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// HeadSize is how much of the beginning of a file Look needs at most, in bytes.
const HeadSize = 64 << 10

// A Header is what a dump says of itself.
type Header struct {
	// Format is one of pgmember.Dump…, and Gzip whether a script is compressed.
	Format string
	Gzip   bool
	// Server is the version of the server that was dumped, and Program the version of pg_dump, such as "17.5 (Debian 17.5-1)".
	Server, Program string
}

// Majors of the server and of the program. One that cannot be read is 0.
func (h Header) Majors() (server, program int) { return major(h.Server), major(h.Program) }

// major version: 9.6 is 9, which is not much less exact than what is compared with it.
func major(version string) int {
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(version)
	}
	n, err := strconv.Atoi(version[:digits])
	if err != nil {
		return 0
	}
	return n
}

// Why a file is no dump that can be restored. Each names what to do.
var (
	errEmpty   = errors.New("it is empty: dump again")
	errUnknown = errors.New("it is not a file that pg_dump wrote: dump with pg_dump in one of its formats; of compressed files, only SQL that is compressed by gzip is read")
	errUTF16   = errors.New("it is UTF-16, which a shell has made of the output of pg_dump: dump again with pg_dump --file")
	errCluster = errors.New("pg_dumpall wrote it, of all databases and roles: dump each database with pg_dump")
	errInGzip  = errors.New("it is an archive that gzip has compressed: decompress it, or dump again, because an archive is compressed by itself")
)

// Of the header of a script.
var (
	fromVersion = regexp.MustCompile(`(?m)^-- Dumped from database version ([0-9][^\r\n]*)`)
	byVersion   = regexp.MustCompile(`(?m)^-- Dumped by pg_dump version ([0-9][^\r\n]*)`)
)

const (
	scriptTitle  = "-- PostgreSQL database dump"
	clusterTitle = "-- PostgreSQL database cluster dump"
	magic        = "PGDMP"
	tarBlock     = 512
)

// Look at the beginning of a file.
func Look(head []byte) (Header, error) {
	switch {
	case len(head) == 0:
		return Header{}, errEmpty
	case bytes.HasPrefix(head, []byte(magic)):
		return archive(head, pgmember.DumpCustom)
	case isTar(head):
		return archive(head[tarBlock:], pgmember.DumpTar)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return Header{}, errUTF16
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return Header{}, errUnknown
		}
		// What was cut off is not needed.
		inner, _ := io.ReadAll(io.LimitReader(z, HeadSize))
		if bytes.HasPrefix(inner, []byte(magic)) || isTar(inner) {
			return Header{}, errInGzip
		}
		h, err := script(inner)
		h.Gzip = true
		return h, err
	default:
		return script(head)
	}
}

// isTar reports whether a file is the archive of pg_dump in a tar, whose first file is the table of contents.
func isTar(head []byte) bool {
	return len(head) > tarBlock && bytes.HasPrefix(head, []byte("toc.dat\x00")) && bytes.HasPrefix(head[tarBlock:], []byte(magic))
}

func archive(head []byte, format string) (Header, error) {
	r := &reader{from: bufio.NewReader(bytes.NewReader(head)), most: HeadSize}
	h := r.header()
	h.Format = format
	return h, r.err
}

func script(head []byte) (Header, error) {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	title := []byte(scriptTitle)
	switch {
	case bytes.Contains(head, []byte(clusterTitle)):
		return Header{}, errCluster
	case !bytes.Contains(head, title):
		return Header{}, errUnknown
	}
	from, by := fromVersion.FindSubmatch(head), byVersion.FindSubmatch(head)
	if from == nil || by == nil {
		return Header{}, errUnknown
	}
	return Header{Format: pgmember.DumpPlain, Server: string(from[1]), Program: string(by[1])}, nil
}

// An Entry of a table of contents.
type Entry struct {
	ID, TableOID, OID int
	Tag, Kind         string
	// Definition is the statement that makes it, if one does.
	Definition string
	// File of a directory that has its data, if it has any.
	File string
}

// most entries of a table of contents, and the most bytes of all.
const (
	maxEntries = 1_000_000
	maxTOC     = 256 << 20
)

// Files of a directory, as pg_dump names them in a table of contents, and as they are kept.
var (
	listed = regexp.MustCompile(`^([0-9]{1,10}\.dat|blobs(_[0-9]{1,10})?\.toc)$`)
	kept   = regexp.MustCompile(`^(toc\.dat|([0-9]{1,10}\.dat|blob_[0-9]{1,10}\.dat)(\.gz|\.lz4|\.zst)?|blobs(_[0-9]{1,10})?\.toc)$`)
	// blob is a line of a list of large objects.
	blob = regexp.MustCompile(`^[0-9]{1,10} blob_[0-9]{1,10}\.dat$`)
)

// Kept reports whether a file of a directory is one that pg_dump writes. No name has a folder.
func Kept(name string) bool { return kept.MatchString(name) }

// Blobs checks the list of large objects of a directory: pg_restore opens each file that it names, and one that is not of the dump could be a
// secret of this member.
func Blobs(list io.Reader) error {
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		if !blob.MatchString(lines.Text()) {
			return errors.New("its list of large objects names files that pg_dump does not write: dump again")
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("its list of large objects cannot be read: %w", err)
	}
	return nil
}

// errCut is why a table of contents cannot be read.
var errCut = errors.New("its table of contents ends too early, or is damaged: copy or dump it again")

// TOC reads the table of contents of an archive: of a custom one from its beginning, of a tar likewise, and of a directory from its toc.dat.
func TOC(from io.Reader, format string) (Header, []Entry, error) {
	buffered := bufio.NewReader(from)
	if format == pgmember.DumpTar {
		if _, err := buffered.Discard(tarBlock); err != nil {
			return Header{}, nil, errCut
		}
	}
	r := &reader{from: buffered, most: maxTOC}
	h := r.header()
	h.Format = format
	count := r.int()
	if r.err == nil && (count < 0 || count > maxEntries) {
		r.err = errCut
	}
	var all []Entry
	for range count {
		if r.err != nil {
			break
		}
		all = append(all, r.entry(format))
	}
	return h, all, r.err
}

// Versions of the form of an archive: minor numbers behind 1.
const (
	firstArchive = 12 // PostgreSQL 9.0
	withTableAM  = 14
	withMethod   = 15
	withRelkind  = 16
	lastArchive  = 16 // PostgreSQL 17 and 18
)

// A reader of an archive, as pg_restore reads it. The first error stays, and everything behind it is empty.
type reader struct {
	from  *bufio.Reader
	most  int
	minor int
	off   int
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.most--; r.most < 0 {
		r.fail(errCut)
		return 0
	}
	b, err := r.from.ReadByte()
	if err != nil {
		r.fail(cut(err))
	}
	return b
}

// cut is an error of reading: an end is the file's, and another one is not.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// int with a sign and four bytes, the least first.
func (r *reader) int() int {
	sign, n := r.byte(), 0
	for shift := 0; shift < 32; shift += 8 {
		n |= int(r.byte()) << shift
	}
	if r.err != nil {
		return 0
	}
	if sign != 0 {
		return -n
	}
	return n
}

// text; there is none when ok is false.
func (r *reader) text() (s string, ok bool) {
	n := r.int()
	if n < 0 || r.err != nil {
		return "", false
	}
	if r.most -= n; r.most < 0 {
		r.fail(errCut)
		return "", false
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(r.from, raw); err != nil {
		r.fail(cut(err))
		return "", false
	}
	return string(raw), true
}

func (r *reader) header() Header {
	for _, c := range []byte(magic) {
		if r.byte() != c {
			r.fail(errUnknown)
		}
	}
	major := r.byte()
	r.minor = int(r.byte())
	r.byte() // revision
	size := r.byte()
	r.off = int(r.byte())
	r.byte() // format
	switch {
	case r.err != nil:
		return Header{}
	case major != 1 || r.minor < firstArchive:
		r.fail(errors.New("a pg_dump before version 9.0 wrote it: dump again with a later one"))
	case r.minor > lastArchive:
		r.fail(fmt.Errorf("a pg_dump that is newer than this image knows wrote it (form %d.%d): dump again with the pg_dump of an earlier version", major, r.minor))
	case size != 4 || r.off < 1 || r.off > 8:
		r.fail(errCut)
	}
	if r.minor >= withMethod {
		r.byte() // how it is compressed
	} else {
		r.int()
	}
	for range 7 {
		r.int() // when it was written
	}
	r.text() // database
	var h Header
	h.Server, _ = r.text()
	h.Program, _ = r.text()
	return h
}

func (r *reader) entry(format string) Entry {
	var e Entry
	e.ID = r.int()
	r.int() // whether it has data
	tableOID, _ := r.text()
	oid, _ := r.text()
	e.Tag, _ = r.text()
	e.Kind, _ = r.text()
	r.int() // section
	e.Definition, _ = r.text()
	r.text() // what drops it
	r.text() // what copies into it
	r.text() // schema
	r.text() // tablespace
	if r.minor >= withTableAM {
		r.text()
	}
	if r.minor >= withRelkind {
		r.int()
	}
	r.text() // owner
	r.text() // oids
	for {
		if _, more := r.text(); !more {
			break
		}
	}
	if format == pgmember.DumpCustom {
		for range 1 + r.off {
			r.byte()
		}
	} else {
		e.File, _ = r.text()
	}
	if r.err != nil {
		return Entry{}
	}
	e.TableOID, _ = strconv.Atoi(tableOID)
	e.OID, _ = strconv.Atoi(oid)
	if format == pgmember.DumpDirectory && e.File != "" && !listed.MatchString(e.File) {
		r.fail(fmt.Errorf("its table of contents names the file %.80q, which pg_dump does not write: dump again", e.File))
	}
	return e
}
