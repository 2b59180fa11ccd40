// Command pack makes .mcpb bundles of binaries that are built already, and the
// server.json that goes with them. It is the last step of mcpb/build.sh.
//
//	go run ./mcpb/_pack [-image REF] [-release URL] OUT OS/ARCH=BINARY…
//
// The same binaries give the same bytes: files in one order, one date, no owners.
// The folder's name begins with _ so that it is no part of the module's packages.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// platforms are the names that bundles have for systems of Go.
var platforms = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}

func main() {
	image := flag.String("image", "", "the `REF` of the image, without its tag, in place of the one in server.json")
	release := flag.String("release", "", "the `URL` of the folder that bundles are published in, in place of the one in server.json")
	flag.Parse()
	if err := run(*image, *release, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(image, release string, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: pack [-image REF] [-release URL] OUT OS/ARCH=BINARY…")
	}
	var server map[string]any
	if err := readJSON("server.json", &server); err != nil {
		return err
	}
	version, _ := server["version"].(string)
	if version == "" {
		return errors.New("server.json has no version")
	}
	sums := map[string]string{}
	for _, arg := range args[1:] {
		platform, binary, ok := strings.Cut(arg, "=")
		goos, arch, ok2 := strings.Cut(platform, "/")
		if !ok || !ok2 || platforms[goos] == "" || arch == "" {
			return fmt.Errorf("%q is not OS/ARCH=BINARY", arg)
		}
		name := fmt.Sprintf("marchwarden-%s-%s-%s.mcpb", version, goos, arch)
		bundle, err := pack(goos, version, binary)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(args[0], name), bundle, 0o644); err != nil {
			return err
		}
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(bundle))
		fmt.Printf("%s  %s\n", sums[name], name)
	}
	if err := complete(server, sums, image, release); err != nil {
		return err
	}
	data, err := inJSON(server)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(args[0], "server.json"), data, 0o644)
}

// pack makes one bundle: the manifest of the platform, the program and the licence.
func pack(goos, version, binary string) ([]byte, error) {
	var manifest map[string]any
	if err := readJSON(filepath.Join("mcpb", "manifest.json"), &manifest); err != nil {
		return nil, err
	}
	program := "server/marchwarden"
	if goos == "windows" {
		program += ".exe"
	}
	server, ok := manifest["server"].(map[string]any)
	config, ok2 := server["mcp_config"].(map[string]any)
	if !ok || !ok2 {
		return nil, errors.New("mcpb/manifest.json has no server.mcp_config")
	}
	manifest["version"] = version
	manifest["compatibility"] = map[string]any{"platforms": []string{platforms[goos]}}
	server["entry_point"], config["command"] = program, "${__dirname}/"+program
	text, err := inJSON(manifest)
	if err != nil {
		return nil, err
	}
	code, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err = errors.Join(add(w, "manifest.json", 0o644, text), add(w, "LICENSE", 0o644, licence), add(w, program, 0o755, code), w.Close())
	return out.Bytes(), err
}

// add writes sizes before the data, not after it, which every reader of zips
// understands, and the first day that zips know.
func add(w *zip.Writer, name string, mode fs.FileMode, data []byte) error {
	var packed bytes.Buffer
	c, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return err
	}
	if _, err := c.Write(data); err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	h := &zip.FileHeader{
		Name: name, Method: zip.Deflate, ModifiedDate: 1<<5 | 1, CRC32: crc32.ChecksumIEEE(data),
		CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(data)),
	}
	h.SetMode(mode)
	f, err := w.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = f.Write(packed.Bytes())
	return err
}

// complete gives the bundles of server.json their hashes and leaves out those that
// were not made, and puts other addresses in if there are any.
func complete(server map[string]any, sums map[string]string, image, release string) error {
	all, _ := server["packages"].([]any)
	var kept []any
	for _, p := range all {
		pkg, ok := p.(map[string]any)
		id, ok2 := pkg["identifier"].(string)
		if !ok || !ok2 {
			return errors.New("server.json has a package without an identifier")
		}
		switch pkg["registryType"] {
		case "oci":
			if image != "" {
				pkg["identifier"] = image + id[strings.LastIndex(id, ":"):]
			}
		case "mcpb":
			name := id[strings.LastIndex(id, "/")+1:]
			if sums[name] == "" {
				continue
			}
			pkg["fileSha256"] = sums[name]
			if release != "" {
				pkg["identifier"] = strings.TrimRight(release, "/") + "/" + name
			}
			delete(sums, name)
		}
		kept = append(kept, pkg)
	}
	for name := range sums {
		return fmt.Errorf("server.json does not name %s", name)
	}
	server["packages"] = kept
	return nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func inJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}
