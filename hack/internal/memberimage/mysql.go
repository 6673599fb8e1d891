// SPDX-License-Identifier: Apache-2.0

package memberimage

import (
	"strings"

	"github.com/capstan-dev/capstan/hack/internal/debian"
)

// MySQL is the image of a MySQL Database's members. MySQL is in no stable release of Debian; sid has the newest series with long-term
// support, and its security updates.
func MySQL() Image {
	return Image{
		Name: "mysql", Server: "MySQL", Versions: []string{"9.7"},
		Env:     env(),
		account: "mysql",
		socket:  "run/mysqld",
		request: debian.Request{
			Architectures: []string{"amd64", "arm64"},
			Suites:        []string{"sid"},
			Names:         common("mysql-server-core", "mysql-client-core", "prometheus-mysqld-exporter", "restic"),
			Without: []string{
				// Perl, and what only installs and configures packages on a machine.
				"adduser", "debconf", "init-system-helpers", "passwd", "perl",
				// The parser of Japanese full-text indexes has a dictionary that is larger than the server.
				"libmecab2", "mecab-ipadic-utf8", "mecab-utils",
				// The server needs the small one of two libraries.
				"libprotobuf32t64",
				// Telemetry and logins by a hardware key are left out below.
				"libcurl4t64", "libfido2-1",
			},
		},
		version: func(p debian.Package) string {
			if p.Name != "mysql-client-core" && p.Name != "mysql-server-core" {
				return ""
			}
			// The names are the same for every series.
			series := upstream(p.Version)
			return series[:max(0, strings.LastIndex(series, "."))]
		},
		server: func(string) string { return "mysql-server-core" },
		tools:  map[string]string{"prometheus-mysqld-exporter": "mysqld-exporter", "restic": "restic"},
		omitted: []string{
			// A member is started by its own program, and its files are of use to the server alone.
			`usr/bin/(ibd2sdi|innochecksum|my_print_defaults|myisam.*|mysqld_(multi|safe)|mysqldumpslow|perror)`,
			`usr/bin/mysql(_(config_editor|migrate_keyring|secure_installation)|check|import|show|slap)`,
			// Logins of other kinds, telemetry, a parser without its library, and examples.
			`usr/lib/mysql/plugin/(adt_null|authentication_.*|component_telemetry|libpluginmecab|mypluglib|telemetry_client)\.so`,
			// Messages are in English: logs are read by programs, too.
			`usr/share/mysql/(bulgarian|czech|danish|dutch|estonian|french|german|greek|hungarian|italian|japanese|korean|norwegian.*)`,
			`usr/share/mysql/(polish|portuguese|romanian|russian|serbian|slovak|spanish|swedish|ukrainian|mysql-log-rotate)`,
			`usr/share/(fish|zsh)`,
			`var/lib/prometheus`,
		},
		programs: []program{
			{path: "usr/sbin/mysqld", args: []string{
				"--basedir=%[1]s/usr", "--lc-messages-dir=%[1]s/usr/share/mysql", "--character-sets-dir=%[1]s/usr/share/mysql/charsets",
				"--plugin-dir=%[1]s/usr/lib/mysql/plugin",
			}},
			{path: "usr/bin/mysql", args: clientArgs()},
			{path: "usr/bin/mysqladmin", args: clientArgs()},
			{path: "usr/bin/mysqlbinlog", args: []string{"--character-sets-dir=%[1]s/usr/share/mysql/charsets"}},
			{path: "usr/bin/mysqldump", args: clientArgs()},
			{path: "usr/bin/prometheus-mysqld-exporter"},
			{path: "usr/bin/restic"},
		},
	}
}

func clientArgs() []string {
	return []string{"--character-sets-dir=%[1]s/usr/share/mysql/charsets", "--plugin-dir=%[1]s/usr/lib/mysql/plugin"}
}
