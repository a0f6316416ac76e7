// Prints an edition of http-cache-tests as the JSON that suite.go reads. Argument: the edition's folder.
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'

const dir = process.argv[1]
const load = async name => (await import(pathToFileURL(path.join(dir, name)))).default
const read = name => JSON.parse(fs.readFileSync(path.join(dir, name), 'utf8'))

const { name, version } = read('package.json')
const categories = (await load('tests/index.mjs')).map(category => ({
  id: category.id,
  name: category.name,
  tests: category.tests
    .filter(test => test.browser_only !== true)
    .map(test => ({
      id: test.id,
      name: test.name.trim(),
      kind: test.kind ?? 'required',
      dependsOn: test.depends_on ?? []
    }))
}))
const carried = (await load('results/index.mjs'))
  .filter(result => result.type !== 'browser')
  .map(result => ({ name: result.name, version: result.version, results: read(path.join('results', result.file)) }))

console.log(JSON.stringify({ edition: `${name} ${version}`, categories, carried }))
