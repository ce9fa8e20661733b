// Knex and Objection: migrations with their table of locks, seeds, relations of models, eager loading, JSON, transactions.
const { Model, raw } = require('objection');
const Knex = require('knex');

const env = process.env;
const knex = Knex({
  client: 'mysql2', connection: { host: '127.0.0.1', port: +env.DATABASE_PORT, user: env.DATABASE_USER, password: env.DATABASE_PASSWORD, database: env.DATABASE, charset: 'utf8mb4' },
  pool: { min: 1, max: 1 },
});
Model.knex(knex);
const found = {};
const plain = (rows) => JSON.parse(JSON.stringify(rows));

const migrations = {
  async '1_tables'(k) {
    await k.schema.createTable('persons', (t) => {
      t.increments();
      t.string('name').notNullable().index();
      t.integer('parentId').unsigned().references('id').inTable('persons').onDelete('SET NULL').index();
      t.json('address');
      t.enu('mood', ['good', 'bad']).defaultTo('good');
      t.decimal('money', 12, 4).defaultTo(0);
      t.timestamp('seen_at', { precision: 3 }).defaultTo(knex.fn.now(3));
      t.unique(['name', 'mood']);
    });
    await k.schema.createTable('animals', (t) => {
      t.bigIncrements('id');
      t.string('name', 50).collate('utf8mb4_unicode_520_ci');
      t.integer('ownerId').unsigned().references('persons.id').onDelete('CASCADE').onUpdate('CASCADE');
      t.enu('species', ['dog', 'cat', 'dragon']);
      t.specificType('flags', "set('a','b','c')");
      t.check('char_length(??) > 1', ['name']);
    });
    await k.schema.createTable('movies', (t) => { t.increments(); t.text('name', 'longtext'); t.date('released'); });
    await k.schema.createTable('persons_movies', (t) => {
      t.integer('personId').unsigned().references('persons.id').onDelete('CASCADE');
      t.integer('movieId').unsigned().references('movies.id').onDelete('CASCADE');
      t.primary(['personId', 'movieId']);
    });
  },
  async '2_changes'(k) {
    await k.schema.alterTable('movies', (t) => { t.string('studio', 30).after('name').comment('who made it'); t.index([knex.raw('name(20)')], 'by_name'); });
    await k.schema.alterTable('persons', (t) => { t.boolean('alive').notNullable().defaultTo(true); t.string('name', 100).notNullable().alter(); });
    await k.schema.createView('old_movies', (v) => { v.columns(['name']); v.as(knex('movies').select('name').where('released', '<', '1980-01-01')); });
  },
};
const source = { getMigrations: async () => Object.keys(migrations), getMigrationName: (n) => n, getMigration: (n) => ({
  up: (k) => migrations[n](k),
  async down(k) {
    if (n === '2_changes') { await k.schema.dropView('old_movies'); await k.schema.alterTable('movies', (t) => { t.dropIndex([], 'by_name'); t.dropColumn('studio'); }); await k.schema.alterTable('persons', (t) => t.dropColumn('alive')); }
    else for (const name of ['persons_movies', 'movies', 'animals', 'persons']) await k.schema.dropTable(name);
  },
}) };

class Animal extends Model { static tableName = 'animals'; }
class Movie extends Model { static tableName = 'movies'; }
class Person extends Model {
  static tableName = 'persons';
  static jsonAttributes = ['address'];
  static relationMappings = () => ({
    pets: { relation: Model.HasManyRelation, modelClass: Animal, join: { from: 'persons.id', to: 'animals.ownerId' } },
    movies: { relation: Model.ManyToManyRelation, modelClass: Movie, join: { from: 'persons.id', through: { from: 'persons_movies.personId', to: 'persons_movies.movieId' }, to: 'movies.id' } },
    children: { relation: Model.HasManyRelation, modelClass: Person, join: { from: 'persons.id', to: 'persons.parentId' } },
    parent: { relation: Model.BelongsToOneRelation, modelClass: Person, join: { from: 'persons.parentId', to: 'persons.id' } },
  });
}

async function main() {
  const config = { migrationSource: source };
  found['migrated'] = await knex.migrate.latest(config);
  found['rolled back'] = await knex.migrate.rollback(config, true);
  found['migrated again'] = await knex.migrate.latest(config);
  found['version'] = await knex.migrate.currentVersion(config);
  found['columns'] = await knex('persons').columnInfo();
  found['has'] = [await knex.schema.hasTable('animals'), await knex.schema.hasTable('none'), await knex.schema.hasColumn('movies', 'studio')];

  await Person.query().insertGraph([
    { name: 'Ada', money: '12.3456', address: { city: 'Köln', zip: [5, 0, 6] }, pets: [{ name: 'Fluffy', species: 'cat', flags: 'a,c' }, { name: 'Smaug', species: 'dragon' }],
      movies: [{ name: 'M', released: '1931-05-11' }, { name: 'Solaris', released: '1972-05-13', studio: 'Mosfilm' }],
      children: [{ name: 'Bob', mood: 'bad', children: [{ name: 'Cyd', address: { city: 'Bonn' } }, { name: 'Dora', alive: false }], movies: [{ name: 'Arrival', released: '2016-11-11' }] }, { name: 'Eve' }] },
    { name: 'Zed', mood: 'bad', address: null },
  ]);
  const pick = ['id', 'name', 'parentId', 'mood', 'money', 'alive', 'address'];
  found['eager'] = plain(await Person.query().select(pick).where('name', 'Ada').withGraphFetched('[pets(byName), movies, children.^3]').modifyGraph('children', (b) => b.select(pick).orderBy('id')).modifiers({ byName: (b) => b.orderBy('name') }).modifyGraph('movies', (b) => b.orderBy('movies.id')));
  found['joined eager'] = plain(await Person.query().select('persons.id', 'persons.name').withGraphJoined('[pets, parent(few)]').modifiers({ few: (b) => b.select('id', 'name') }).orderBy(['persons.id', 'pets.id']));
  found['JSON'] = [plain(await Person.query().select('name').where(raw("address->>'$.city'"), 'Köln')), plain(await knex('persons').select('name').jsonExtract('address', '$.zip[2]', 'zip').orderBy('id')), plain(await knex('persons').select('name').whereJsonPath('address', '$.city', '=', 'Bonn'))];
  found['subqueries'] = plain(await Person.query().select('name', Person.relatedQuery('pets').count().as('pets')).whereExists(Person.relatedQuery('movies').where('released', '>', '1950-01-01')).orderBy('name'));
  found['union and with'] = plain(await knex.with('dead', knex('persons').where('alive', false)).select('name').from('dead').union(knex('animals').select('species')).orderBy('name'));
  found['recursive'] = plain(await knex.withRecursive('tree', (q) => { q.select('id', 'name', knex.raw('0 as depth')).from('persons').where('name', 'Ada').unionAll((u) => u.select('p.id', 'p.name', knex.raw('tree.depth + 1')).from('persons as p').join('tree', 'tree.id', 'p.parentId')); }).select('name', 'depth').from('tree').orderBy(['depth', 'name']));
  found['window'] = plain(await knex('persons').select('name').rank('r', (w) => w.partitionBy('mood').orderBy('name', 'desc')).rowNumber('n', 'id').orderBy('n'));
  found['view'] = plain(await knex('old_movies').orderBy('name'));
  found['patched'] = [await Person.query().patch({ money: raw('money + 1') }).where('mood', 'bad'), await Person.query().findById(1).patch({ address: raw("json_set(address, '$.city', 'Bonn')") }), plain(await Person.query().findById(1).select('address'))];
  found['merged'] = [await knex('persons').insert({ id: 1, name: 'Ada L.', mood: 'good' }).onConflict('id').merge(['name']), await knex('persons').insert({ id: 1, name: 'ignored' }).onConflict('id').ignore(), await knex('persons').where({ id: 1 }).first('name')].map(plain);
  const refused = async (work) => { try { await work; return null; } catch (e) { return [e.name, (e.nativeError || e).errno, (e.nativeError || e).sqlMessage]; } };
  found['refused'] = [await refused(Animal.query().insert({ id: 90, name: 'x' })), await refused(Animal.query().insert({ id: 91, name: 'xx', ownerId: 99 })), await refused(Person.query().insert({ name: 'Zed', mood: 'bad' })), await refused(Person.query().insert({ mood: 'bad' }))];
  found['transaction'] = await Person.transaction(async (trx) => {
    const locked = await Person.query(trx).forUpdate().skipLocked().where('name', 'Zed').first();
    await locked.$query(trx).patch({ money: 5 });
    await locked.$relatedQuery('pets', trx).insert({ id: 200, name: 'Rex', species: 'dog' });
    return plain(await locked.$relatedQuery('pets', trx).select('name', 'species'));
  });
  found['rolled back transaction'] = [await refused(Person.transaction(async (trx) => { await Person.query(trx).delete(); throw new Error('no'); })), await Person.query().resultSize()];
  found['cascade'] = [await Person.query().deleteById(1), await Animal.query().resultSize(), plain(await Person.query().select('name', 'parentId').orderBy('name')), await knex('persons_movies').count('* as n').then(plain)];
  found['batch'] = [(await knex.batchInsert('movies', [...Array(250).keys()].map((n) => ({ name: `movie ${n}`, released: `20${10 + n % 14}-01-01` })), 60)).length, plain(await knex('movies').count('* as n').countDistinct('released as d'))];
  found['rows'] = (await knex.raw('SELECT ?? FROM ?? WHERE ?? LIKE ? ORDER BY 1 LIMIT ?', ['name', 'movies', 'name', 'movie 2_', 3]))[0].map((r) => r.name);
  await knex.destroy();
  console.log(JSON.stringify(found));
}

main().catch((e) => { console.error(e); process.exit(1); });
