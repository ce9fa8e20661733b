// TypeORM: a schema synchronised twice, relations of all kinds, query builders, migrations.
require('reflect-metadata');
const { DataSource, EntitySchema, In, Like, Between, IsNull, Not, MoreThan, Table, TableColumn, TableIndex, TableForeignKey } = require('typeorm');

const env = process.env;
const found = {};
const plain = (rows) => JSON.parse(JSON.stringify(rows));

const User = new EntitySchema({ name: 'User', tableName: 'users', columns: {
  id: { type: 'int', primary: true, generated: true }, name: { type: 'varchar', length: 80 }, email: { type: 'varchar', unique: true },
  role: { type: 'enum', enum: ['admin', 'user'], default: 'user' }, meta: { type: 'json', nullable: true }, score: { type: 'decimal', precision: 9, scale: 3, default: 0 },
  joined: { type: 'datetime', precision: 6, nullable: true }, big: { type: 'bigint', unsigned: true, nullable: true }, version: { type: 'int', version: true },
}, relations: { profile: { type: 'one-to-one', target: 'Profile', inverseSide: 'user', cascade: true }, posts: { type: 'one-to-many', target: 'Post', inverseSide: 'author' } },
indices: [{ columns: ['role', 'name'], name: 'by_role' }], checks: [{ name: 'score_positive', expression: 'score >= 0' }] });
const Profile = new EntitySchema({ name: 'Profile', columns: { id: { type: 'int', primary: true, generated: true }, bio: { type: 'text', nullable: true } },
  relations: { user: { type: 'one-to-one', target: 'User', inverseSide: 'profile', joinColumn: true, onDelete: 'CASCADE' } } });
const Post = new EntitySchema({ name: 'Post', columns: { id: { type: 'varchar', length: 36, primary: true }, title: { type: 'varchar', length: 120 }, words: { type: 'int', default: 0 },
  url: { type: 'varchar', asExpression: "lower(concat('/', `title`))", generatedType: 'STORED' }, deleted: { type: 'datetime', deleteDate: true, nullable: true } },
relations: { author: { type: 'many-to-one', target: 'User', inverseSide: 'posts', onDelete: 'SET NULL', nullable: true, joinColumn: true }, tags: { type: 'many-to-many', target: 'Tag', joinTable: true, cascade: true } } });
const Tag = new EntitySchema({ name: 'Tag', columns: { id: { type: 'int', primary: true, generated: true }, word: { type: 'varchar', length: 40, unique: true } } });

class First1700000000000 {
  async up(q) {
    await q.createTable(new Table({ name: 'audit', columns: [{ name: 'id', type: 'bigint', isPrimary: true, isGenerated: true, generationStrategy: 'increment' }, { name: 'what', type: 'varchar', length: '60' }, { name: 'userId', type: 'int', isNullable: true }] }), true);
    await q.createForeignKey('audit', new TableForeignKey({ columnNames: ['userId'], referencedTableName: 'users', referencedColumnNames: ['id'], onDelete: 'CASCADE' }));
    await q.addColumn('audit', new TableColumn({ name: 'at', type: 'timestamp', default: 'CURRENT_TIMESTAMP' }));
    await q.createIndex('audit', new TableIndex({ name: 'by_what', columnNames: ['what', 'at'] }));
    await q.changeColumn('audit', 'what', new TableColumn({ name: 'event', type: 'varchar', length: '100', isNullable: false }));
  }
  async down(q) { await q.dropTable('audit'); }
}

async function main() {
  const db = new DataSource({ type: 'mysql', host: '127.0.0.1', port: +env.DATABASE_PORT, username: env.DATABASE_USER, password: env.DATABASE_PASSWORD, database: env.DATABASE, charset: 'utf8mb4', timezone: 'Z',
    synchronize: true, entities: [User, Profile, Post, Tag], migrations: [First1700000000000], supportBigNumbers: true, bigNumberStrings: true });
  await db.initialize();
  found['nothing to synchronise'] = (await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query);
  found['migrated'] = (await db.runMigrations()).map((m) => m.name);
  found['migrated back'] = await db.undoLastMigration();
  found['migrated again'] = (await db.runMigrations({ transaction: 'each' })).map((m) => m.name);

  const users = db.getRepository('User'), posts = db.getRepository('Post'), tags = db.getRepository('Tag');
  await users.save([...Array(12).keys()].map((n) => ({ name: `${n % 2 ? 'Ångström' : 'user'} ${n}`, email: `u${n}@example.com`, role: n % 5 ? 'user' : 'admin', meta: { n, list: [n % 3, 'ß'] }, score: (n * 1.125).toFixed(3),
    joined: new Date(Date.UTC(2024, n, 1, 2, 3, 4, 5)), big: `1844674407370955${1000 + n}`, profile: n % 3 ? { bio: `bio ${n}` } : null })), { chunk: 5 });
  const words = await tags.save(['red', 'green', 'größe'].map((word) => ({ word })));
  for (let n = 0; n < 20; n += 1) {
    await posts.save({ id: `post-${String(n).padStart(2, '0')}`, title: `Title ${n % 6} ${n}`, words: n * 10, author: { id: 1 + n % 7 }, tags: words.filter((_, i) => (n >> i) % 2) });
  }
  found['find'] = plain(await users.find({ where: [{ name: Like('%ngstr%'), role: 'user' }, { score: Between('3', '5') }], order: { id: 'ASC' }, relations: { profile: true }, take: 6, skip: 1 }));
  found['relations'] = plain(await users.find({ where: { id: In([1, 2, 5]) }, relations: { posts: { tags: true } }, order: { id: 'ASC', posts: { id: 'DESC', tags: { word: 'ASC' } } }, select: { id: true, name: true, posts: { id: true, url: true, tags: { word: true } } } }));
  found['count'] = await posts.findAndCount({ where: { words: MoreThan(50), author: { role: 'admin' } }, order: { id: 'ASC' }, take: 2 }).then(plain);
  found['builder'] = plain(await posts.createQueryBuilder('p').leftJoin('p.author', 'a').select('a.role', 'role').addSelect('COUNT(*)', 'n').addSelect('SUM(p.words)', 'words').groupBy('a.role').having('COUNT(*) > :n', { n: 1 }).orderBy('role').getRawMany());
  found['subquery'] = plain(await users.createQueryBuilder('u').where((q) => `u.id IN ${q.subQuery().select('p.authorId').from('Post', 'p').where('p.words > :w').getQuery()}`).setParameter('w', 150).orderBy('u.id').getMany()).map((u) => u.name);
  found['JSON'] = plain(await users.createQueryBuilder('u').select(['u.id']).where("JSON_EXTRACT(u.meta, '$.list[0]') = :x AND JSON_CONTAINS(u.meta->'$.list', '\"ß\"')", { x: 2 }).orderBy('u.id').getMany());
  found['null'] = [await users.count({ where: { profile: { id: IsNull() } }, relations: { profile: true } }), await users.count({ where: { profile: { id: Not(IsNull()) } }, relations: { profile: true } })];
  await users.update({ role: 'admin' }, { score: () => 'score + 0.5' });
  await users.increment({ id: 3 }, 'score', 2);
  found['upsert'] = [plain((await users.upsert([{ email: 'u2@example.com', name: 'upserted' }, { email: 'new@example.com', name: 'new' }], ['email'])).identifiers), plain(await users.findOneBy({ email: 'u2@example.com' }))];
  await posts.softDelete({ words: MoreThan(150) });
  found['soft delete'] = [await posts.count(), await posts.count({ withDeleted: true }), (await posts.restore('post-19')).affected];
  const refused = async (work) => { try { await work(); return null; } catch (e) { return [e.name, e.errno || null, e.sqlMessage || e.message]; } };
  found['refused'] = [await refused(() => users.insert({ name: 'x', email: 'u1@example.com' })), await refused(() => users.insert({ name: 'x', email: 'x', score: '-1' })), await refused(() => db.query("INSERT INTO post (id, title, authorId) VALUES ('x', 'x', 999)")), await refused(() => db.query("UPDATE post SET url = 'x'"))];
  found['transaction'] = await refused(() => db.transaction('SERIALIZABLE', async (m) => {
    await m.getRepository('User').createQueryBuilder('u').setLock('pessimistic_write').where('u.id = 1').getOne();
    await m.getRepository('Tag').save({ word: 'gone' });
    throw new Error('rolled back');
  }));
  found['tags'] = (await tags.find({ order: { word: 'ASC' } })).map((t) => t.word);
  await users.delete([1, 4]);
  found['cascaded'] = [await db.getRepository('Profile').count(), await posts.count({ where: { author: { id: IsNull() } }, relations: { author: true } })];
  await db.destroy();
  console.log(JSON.stringify(found));
}

main().catch((e) => { console.error(e); process.exit(1); });
